// Along an axis: products, logarithms of sums, the best k; tables of keys.
// x is (outer, width, inner).
#include <math.h>

#include "call.h"
#include "rows.h"
#include "softmax_columns.h"

// log(sum(exp(x))) of a row; an infinite maximum is no offset.
static float log_sum_exp(const float *x, int64_t n) {
    enum { PART = 4096 };
    const float most = row_greatest(x, n), shift = isinf(most) ? 0 : most;
    double total = 0;
    for (int64_t start = 0; start < n; start += PART, x += PART) {
        const int64_t here = n - start < PART ? n - start : PART;
        vec sum = {0};
        OVER(here, sum += exponential(load(x + i) - shift),
             const vec e = exponential(load_some(x + i, rest) - shift);
             for (int64_t k = 0; k < rest; k++) total += e[k])
        total += sum_of(sum);
    }
    return logf((float)total) + shift;
}

// The same of a vector of columns, of which `some` are there.
INLINE void log_sum_exp_columns(const float *x, float *out, int64_t n, int64_t step,
                                int64_t some) {
    vec most = all(-INFINITY);
    for (int64_t k = 0; k < n; k++) most = greater(most, load_up_to(x + k * step, some));
    const ivec is_infinite = (ivec)(most == INFINITY) | (ivec)(most == -INFINITY);
    const vec shift = choose(is_infinite, all(0), most);
    SUM_OF_ROWS(sum, n, exponential(load_up_to(x + k * step, some) - shift))
    for (int64_t i = 0; i < some; i++) out[i] = logf(sum[i]) + shift[i];
}

void fold(const void *record, const call *c, int64_t part, int64_t parts) {
    const fold_record *r = record;
    const int64_t width = r->width, inner = r->inner;
    const int is_prod = r->mode == FOLD_PROD;
    SHARE(r->outer);
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * width * inner;
        float *out = (float *)at(c, r->out) + u * inner;
        if (inner == 1) {
            float product = 1;
            for (int64_t k = 0; is_prod && k < width; k++) product *= x[k];
            *out = is_prod ? product : log_sum_exp(x, width);
        } else if (is_prod) {
            memcpy(out, x, 4 * (size_t)inner);
            for (int64_t k = 1; k < width; k++)
                for (int64_t i = 0; i < inner; i++) out[i] *= x[k * inner + i];
        } else {
            for (int64_t i = 0; i < inner; i += WIDTH)
                log_sum_exp_columns(x + i, out + i, width, inner,
                                    inner - i < WIDTH ? inner - i : WIDTH);
        }
    }
}

// Whether element a of a line comes before b: NaN is above all numbers, and of equal
// ones the first comes first.
#define BEFORE(name, type)                                                        \
    INLINE int name(const type *x, int64_t step, int64_t a, int64_t b, int largest) { \
        const type p = x[a * step], q = x[b * step];                              \
        const int p_is_nan = p != p, q_is_nan = q != q;                           \
        if (p_is_nan || q_is_nan) {                                               \
            if (p_is_nan != q_is_nan) return largest ? p_is_nan : q_is_nan;       \
            return a < b;                                                         \
        }                                                                         \
        if (p == q) return a < b;                                                 \
        return largest ? p > q : p < q;                                           \
    }

// Where the next vector of a row of n starts, from i on, that may have an element better
// than x[top], or as good where `ties` count; the rest of the row, and rows of elements
// that are apart, have no vectors.
INLINE int64_t float_next(const float *x, int64_t step, int64_t i, int64_t n, int64_t top,
                          int largest, int ties) {
    if (step > 1) return i;
    const float sign = largest ? 1 : -1;
    const vec bound = all(sign * x[top]);
    if (ties)
        while (i + WIDTH <= n && !any(~(ivec)(sign * load(x + i) < bound))) i += WIDTH;
    else
        while (i + WIDTH <= n && !any_beyond(sign * load(x + i), bound)) i += WIDTH;
    return i;
}
INLINE int64_t integer_next(const int64_t *x, int64_t step, int64_t i, int64_t n,
                            int64_t top, int largest, int ties) {
    return i;
}

enum { BLOCK = 256 };  // elements that are looked at in order

// A heap of the best so far, the worst one on top; then the heap in order. Blocks are looked
// at from the end where the last element is better than the first: in a line that goes up
// few elements enter the heap then, not all. Equal ones that come first enter it late then.
#define BEST(name, before, next, type)                                                   \
    static void name##_down(const type *x, int64_t step, int largest, int64_t *heap, \
                            int64_t n, int64_t place) {                            \
        const int64_t moved = heap[place];                                         \
        for (int64_t child; (child = 2 * place + 1) < n; place = child) {          \
            if (child + 1 < n && before(x, step, heap[child], heap[child + 1], largest)) \
                child++;                                                           \
            if (!before(x, step, moved, heap[child], largest)) break;              \
            heap[place] = heap[child];                                             \
        }                                                                          \
        heap[place] = moved;                                                       \
    }                                                                              \
    static void name(const top_k_record *r, const type *x, int64_t *heap) {        \
        const int64_t k = r->k, step = r->inner, width = r->width;                         \
        const int largest = (int)r->largest;                                               \
        const int back = before(x, step, width - 1, 0, largest);                           \
        const int64_t low = back ? 0 : k, high = back ? width - k : width;                 \
        const int64_t blocks = (high - low + BLOCK - 1) / BLOCK;                           \
        for (int64_t i = 0; i < k; i++) heap[i] = back ? high + i : i;                     \
        for (int64_t i = k / 2; i-- > 0;) name##_down(x, step, largest, heap, k, i);       \
        for (int64_t b = 0; b < blocks; b++) {                                             \
            int64_t i = low + (back ? blocks - 1 - b : b) * BLOCK;                         \
            const int64_t last = i + BLOCK < high ? i + BLOCK : high;                      \
            while (i < last) {                                                             \
                i = next(x, step, i, last, heap[0], largest, back);                        \
                const int64_t end = i + WIDTH < last ? i + WIDTH : last;                   \
                for (; i < end; i++) {                                                     \
                    if (!before(x, step, i, heap[0], largest)) continue;                   \
                    heap[0] = i;                                                           \
                    name##_down(x, step, largest, heap, k, 0);                             \
                }                                                                          \
            }                                                                              \
        }                                                                                  \
        for (int64_t n = k - 1; n > 0; n--) {                                      \
            const int64_t worst = heap[0];                                         \
            heap[0] = heap[n], heap[n] = worst;                                    \
            name##_down(x, step, largest, heap, n, 0);                             \
        }                                                                          \
    }

BEFORE(float_before, float)
BEFORE(integer_before, int64_t)
BEST(best_floats, float_before, float_next, float)
BEST(best_integers, integer_before, integer_next, int64_t)

// The places of the k best of each line, best first; `space`: k for each share.
void top_k(const void *record, const call *c, int64_t part, int64_t parts) {
    const top_k_record *r = record;
    int64_t *heap = (int64_t *)at(c, r->space) + part * r->k;
    SHARE(r->outer * r->inner);
    for (int64_t u = first; u < behind; u++) {
        const int64_t place = u / r->inner * r->width * r->inner + u % r->inner;
        if (r->is_int)
            best_integers(r, (const int64_t *)at(c, r->x) + place, heap);
        else
            best_floats(r, (const float *)at(c, r->x) + place, heap);
        int64_t *out = (int64_t *)at(c, r->out) + u / r->inner * r->k * r->inner;
        for (int64_t i = 0; i < r->k; i++) out[i * r->inner + u % r->inner] = heap[i];
    }
}

#define FOUND(name, type)                                                    \
    INLINE int64_t name(const type *keys, int64_t n, type x) {               \
        int64_t low = 0;                                                     \
        for (int64_t left = n; left > 0;) {                                  \
            const int64_t half = left / 2;                                   \
            const type key = keys[low + half];                               \
            const int is_below = key < x || (x != x && key == key);          \
            low += is_below ? half + 1 : 0, left = is_below ? left - half - 1 : half; \
        }                                                                    \
        if (low == n) return -1;                                             \
        const type key = keys[low];                                          \
        return key == x || (key != key && x != x) ? low : -1;                \
    }

FOUND(place_of_float, float)
FOUND(place_of_integer, int64_t)

// Values of 4 or 8 bytes by sorted keys, a NaN last; `others` for what is no key.
void look_up(const void *record, const call *c, int64_t part, int64_t parts) {
    const look_up_record *r = record;
    const void *x = at(c, r->x), *keys = at(c, r->keys);
    const char *values = at(c, r->values), *others = at(c, r->others);
    SHARE(r->count);
    for (int64_t u = first; u < behind; u++) {
        const int64_t place =
            r->is_int ? place_of_integer(keys, r->keys_count, ((const int64_t *)x)[u])
                      : place_of_float(keys, r->keys_count, ((const float *)x)[u]);
        memcpy((char *)at(c, r->out) + u * r->bytes,
               place < 0 ? others : values + place * r->bytes, (size_t)r->bytes);
    }
}
