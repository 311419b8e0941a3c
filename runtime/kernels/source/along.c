// Along an axis: products, minima, logarithms of sums, the best k; tables of keys.
// x is (outer, width, inner).
#include <math.h>

#include "call.h"
#include "functions.h"

// A number or NaN that is smaller; the first NaN stays, as in NumPy.
INLINE float lower_of(float a, float b) { return b < a || b != b ? b : a; }

// log(sum(exp(x))) of n numbers, `step` apart; an infinite maximum is no offset.
static float log_sum_exp(const float *x, int64_t n, int64_t step) {
    float top = -INFINITY;
    for (int64_t k = 0; k < n; k++) {
        const float value = x[k * step];
        if (value > top) top = value;
    }
    if (isinf(top)) top = 0;
    double sum = 0;
    for (int64_t k = 0; k < n; k += WIDTH) {
        const int64_t some = n - k < WIDTH ? n - k : WIDTH;
        vec v = {0};
        for (int64_t i = 0; i < some; i++) v[i] = x[(k + i) * step] - top;
        v = exponential(v);
        for (int64_t i = 0; i < some; i++) sum += v[i];
    }
    return logf((float)sum) + top;
}

void fold(const void *record, const call *c, int64_t part, int64_t parts) {
    const fold_record *r = record;
    const int64_t inner = r->inner;
    SHARE(r->outer);
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * r->width * inner;
        float *out = (float *)at(c, r->out) + u * inner;
        if (r->mode == FOLD_LOG_SUM_EXP) {
            for (int64_t i = 0; i < inner; i++)
                out[i] = log_sum_exp(x + i, r->width, inner);
            continue;
        }
        memcpy(out, x, 4 * (size_t)inner);
        for (int64_t k = 1; k < r->width; k++) {
            const float *row = x + k * inner;
            if (r->mode == FOLD_MIN)
                for (int64_t i = 0; i < inner; i++) out[i] = lower_of(out[i], row[i]);
            else
                for (int64_t i = 0; i < inner; i++) out[i] *= row[i];
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

// A heap of the best so far, the worst one on top; then the heap in order.
#define BEST(name, before, type)                                                   \
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
        const int64_t k = r->k, step = r->inner;                                   \
        const int largest = (int)r->largest;                                       \
        for (int64_t i = 0; i < k; i++) heap[i] = i;                               \
        for (int64_t i = k / 2; i-- > 0;) name##_down(x, step, largest, heap, k, i); \
        for (int64_t i = k; i < r->width; i++) {                                   \
            if (!before(x, step, i, heap[0], largest)) continue;                   \
            heap[0] = i;                                                           \
            name##_down(x, step, largest, heap, k, 0);                             \
        }                                                                          \
        for (int64_t n = k - 1; n > 0; n--) {                                      \
            const int64_t worst = heap[0];                                         \
            heap[0] = heap[n], heap[n] = worst;                                    \
            name##_down(x, step, largest, heap, n, 0);                             \
        }                                                                          \
    }

BEFORE(float_before, float)
BEFORE(integer_before, int64_t)
BEST(best_floats, float_before, float)
BEST(best_integers, integer_before, int64_t)

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
