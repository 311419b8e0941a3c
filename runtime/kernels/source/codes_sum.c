// Sums of two arrays of codes as codes, and the values that codes stand for.
//
// Codes are bytes, 128 above, in rows of a pixel's channels; those after the last channel
// represent 0, of operands and of results.
#include <math.h>

#include "call.h"
#include "codes.h"

// Bytes of one scale: (byte - middle) * unit.
typedef struct {
    vec unit;
    ivec middle;
} meaning;

static meaning meaning_of(const call *c, int64_t scale, int64_t zero) {
    const int8_t *zeros = at(c, zero);
    const int32_t middle = SHIFT + (zeros ? zeros[0] : 0);
    return (meaning){all(*(const float *)at(c, scale)), (ivec){0} + middle};
}

INLINE vec value_of(const uint8_t *p, const meaning *m) {
    return rounded_product(__builtin_convertvector(widened(p) - m->middle, vec), m->unit);
}

// What codes of a sum are found by, a * by_a + b * by_b + offset of its bytes. It errs by
// less than (1792 + 5 |a| + 5 |b|) / 2**24, in steps of the sum: both values are rounded,
// their sum, its quotient, and five numbers here.
typedef struct {
    coding by;
    vec by_a, by_b;
    int32_t doubt;  // 0 where codes are found by division
} summing;

static summing summing_of(const meaning *a, const meaning *b, const scheme *to, float low,
                          float high) {
    const float by_a = a->unit[0] / to->scale[0], by_b = b->unit[0] / to->scale[0];
    const float largest = 255 * (fabsf(by_a) + fabsf(by_b));
    const int32_t doubt = largest < 60000 ? (int32_t)(5 + largest / 64) : 0;
    const float to_byte = to->zero[0] + (FLOOR + SHIFT + .5f);
    const double offset = to_byte - (double)by_a * a->middle[0] - (double)by_b * b->middle[0];
    const scheme bound = within_bounds(to, all(low), all(high));
    return (summing){
        .by = {.offset = all((float)offset),
               .low = bound.low + to_byte,
               .high = bound.high + to_byte,
               .doubt = doubting(doubt)},
        .by_a = all(by_a),
        .by_b = all(by_b),
        .doubt = doubt,
    };
}

INLINE vec floats_of(const uint8_t *p) { return __builtin_convertvector(widened(p), vec); }

// Shares are lines of pixels.
void codes_sum(const void *record, const call *c, int64_t part, int64_t parts) {
    const codes_sum_record *r = record;
    const meaning a = meaning_of(c, r->a_scale, r->a_zero),
                  b = meaning_of(c, r->b_scale, r->b_zero);
    const scheme to = scheme_of(c, r->scale, r->zero, 0, r->y_low, r->y_high);
    const vec low = all((float)r->low), high = all((float)r->high);
    const summing s = summing_of(&a, &b, &to, (float)r->low, (float)r->high);
    const int64_t length = r->size1 * r->row, wide = length + r->margin1 * r->row;
    vec wrong = {0};
    SHARE(r->images * r->size0);
    for (int64_t u = first; u < behind; u++) {
        const int64_t y = u / r->size0 * (r->size0 + r->margin0) + u % r->size0;
        const uint8_t *p = (const uint8_t *)at(c, r->a) + u * length,
                      *q = (const uint8_t *)at(c, r->b) + u * length;
        uint8_t *out = (uint8_t *)at(c, r->out) + r->start + y * wide;
        for (int64_t i = 0; i < length; i += WIDTH) {
            ivec nearest = (ivec){0} + INT32_MAX;
            const vec number = floats_of(p + i) * s.by_a
                               + (floats_of(q + i) * s.by_b + s.by.offset);
            bytes made = low_bytes(bits_of(number, &s.by, &nearest));
            if (!s.doubt || is_near(nearest, s.doubt)) {
                const vec v = value_of(p + i, &a) + value_of(q + i, &b);
                made = codes_of(at_most(high, at_least(low, v)), &to, &wrong);
            }
            memcpy(out + i, &made, WIDTH);
        }
    }
}

// Values in blocks of channels, or in rows.
void dequantize(const void *record, const call *c, int64_t part, int64_t parts) {
    const dequantize_record *r = record;
    const meaning m = meaning_of(c, r->scale, r->zero);
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++) {
        const uint8_t *x = (const uint8_t *)at(c, r->x) + u * r->row;
        float *out = (float *)at(c, r->out) + u * r->out_row;
        for (int64_t i = 0; i < r->width; i += WIDTH) {
            float *y = out + i / LANES * r->out_block + i % LANES;
            const vec v = value_of(x + i, &m);
            if (r->width - i < WIDTH)
                store_some(y, v, r->width - i);
            else
                store(y, v);
        }
    }
}
