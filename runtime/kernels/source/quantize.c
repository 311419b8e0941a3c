// Numbers of 8 bits: scales that cover an array, rounding, and codes for products.
#include <float.h>
#include <math.h>

#include "bytes.h"
#include "call.h"
#include "rows.h"

enum { SHIFT = 128 };  // from a code, -128 to 127, to the byte that products read

typedef struct {
    vec scale, zero, low, high;
} scheme;

// The nearest integer; a NaN stays.
INLINE vec level_of(vec x, const scheme *s) {
    vec v = at_most(all(4194303.f), at_least(all(-4194303.f), x / s->scale));
    return at_most(s->high, at_least(s->low, rounded(v) + s->zero));
}

static scheme scheme_of(const call *c, int64_t scale, int64_t zero, int64_t i,
                        int64_t low, int64_t high) {
    const float *scales = at(c, scale);
    const int8_t *zeros = at(c, zero);
    return (scheme){all(scales[i]), all(zeros ? zeros[i] : 0), all((float)low),
                    all((float)high)};
}

// The range of n numbers and 0, or 0 where one of them is not finite.
static int range_of(const float *x, int64_t n, float *least, float *most) {
    vec low = {0}, high = {0}, none = {0};
    OVER(n,
         vec v = load(x + i); low = at_most(v, low); high = at_least(v, high);
         none += v - v,
         vec v = load_some(x + i, rest); low = at_most(v, low); high = at_least(v, high);
         none += v - v)
    *least = -greatest_of(-low), *most = greatest_of(high);
    return sum_of(none) == 0;
}

void calibrate(const void *record, const call *c, int64_t part, int64_t parts) {
    const calibrate_record *r = record;
    float *scale = at(c, r->scale);
    int8_t *zero = at(c, r->zero);
    const float span = (float)(r->high - r->low), half = span / 2;
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++) {
        float least, most;
        const float *x = (const float *)at(c, r->x) + u * r->width;
        if (!range_of(x, r->width, &least, &most)) *(int64_t *)at(c, r->fault) = 1;
        const float by = zero ? (most - least) / span
                              : (-least > most ? -least : most) / half;
        scale[u] = !(by > 0) ? 1 : by < FLT_MIN ? FLT_MIN : by;
        if (!zero) continue;
        const float at_zero = rintf(-least / scale[u]) + (float)r->low;
        zero[u] = (int8_t)fminf(fmaxf(at_zero, (float)r->low), (float)r->high);
    }
}

// Every number replaced by the value of its code.
void fake_quantize(const void *record, const call *c, int64_t part, int64_t parts) {
    const fake_quantize_record *r = record;
    const int64_t n = r->width;
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++) {
        const scheme s = scheme_of(c, r->scale, r->zero, r->one ? 0 : u, r->low, r->high);
        const float *x = (const float *)at(c, r->x) + u * n;
        float *out = (float *)at(c, r->out) + u * n;
        OVER(n,
             store(out + i, (level_of(load(x + i), &s) - s.zero) * s.scale),
             store_some(out + i,
                        (level_of(load_some(x + i, rest), &s) - s.zero) * s.scale, rest))
    }
}

// A vector's codes as bytes; `wrong` collects NaNs.
INLINE bytes codes_of(vec x, const scheme *s, ivec *wrong) {
    const vec level = level_of(x, s);
    *wrong |= level != level;
    return __builtin_convertvector(__builtin_convertvector(level, ivec) + SHIFT, bytes);
}

// Codes as bytes, the channels of a pixel side by side, in rows of `out_row` bytes; maps
// have a margin that represents 0, and so have the places after the last channel.
void quantize(const void *record, const call *c, int64_t part, int64_t parts) {
    const quantize_record *r = record;
    uint8_t *out = at(c, r->out);
    const int64_t wide = r->before1 + r->size1 + r->behind1;
    const int64_t high = r->before0 + r->size0 + r->behind0;
    ivec wrong = {0};
    SHARE(r->images * high);
    for (int64_t u = first; u < behind; u++) {
        const int64_t image = u / high, y = u % high - r->before0;
        uint8_t *line = out + u * wide * r->out_row;
        const int is_inside = y >= 0 && y < r->size0;
        for (int64_t place = 0; place < wide; place++) {
            const int64_t at1 = place - r->before1;
            const int64_t pixel = (image * r->size0 + y) * r->size1 + at1;
            const int64_t row = r->one ? 0 : pixel;
            uint8_t *to = line + place * r->out_row;
            if (!is_inside || at1 < 0 || at1 >= r->size1) {
                const int8_t *zeros = at(c, r->zero);
                memset(to, SHIFT + (zeros ? zeros[0] : 0), (size_t)r->out_row);
                continue;
            }
            const scheme s = scheme_of(c, r->scale, r->zero, row, r->low, r->high);
            const float *x = (const float *)at(c, r->x) + pixel * r->x_row;
            int64_t done = 0;
            for (; done + WIDTH <= r->width; done += WIDTH) {
                bytes b = codes_of(
                    load(x + done / LANES * r->x_block + done % LANES), &s, &wrong);
                memcpy(to + done, &b, WIDTH);
            }
            if (done < r->width) {
                const int64_t rest = r->width - done;
                vec v = load_some(x + done / LANES * r->x_block + done % LANES, rest);
                bytes b = codes_of(v, &s, &wrong);
                memcpy(to + done, &b, (size_t)rest);
                done += rest;
            }
            memset(to + done, SHIFT + (int)s.zero[0], (size_t)(r->out_row - done));
        }
    }
    for (int i = 0; i < WIDTH; i++)
        if (wrong[i]) *(int64_t *)at(c, r->fault) = 1;
}
