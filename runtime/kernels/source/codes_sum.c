// Sums of two arrays of codes as codes, and the values that codes stand for.
//
// Codes are bytes, 128 above, in rows of a pixel's channels; those after the last channel
// represent 0, of operands and of results.
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

// Shares are lines of pixels.
void codes_sum(const void *record, const call *c, int64_t part, int64_t parts) {
    const codes_sum_record *r = record;
    const meaning a = meaning_of(c, r->a_scale, r->a_zero),
                  b = meaning_of(c, r->b_scale, r->b_zero);
    const scheme to = scheme_of(c, r->scale, r->zero, 0, r->y_low, r->y_high);
    const vec low = all((float)r->low), high = all((float)r->high);
    const int64_t length = r->size1 * r->row, wide = length + r->margin1 * r->row;
    vec wrong = {0};
    SHARE(r->images * r->size0);
    for (int64_t u = first; u < behind; u++) {
        const int64_t y = u / r->size0 * (r->size0 + r->margin0) + u % r->size0;
        const uint8_t *p = (const uint8_t *)at(c, r->a) + u * length,
                      *q = (const uint8_t *)at(c, r->b) + u * length;
        uint8_t *out = (uint8_t *)at(c, r->out) + r->start + y * wide;
        for (int64_t i = 0; i < length; i += WIDTH) {
            const vec v = value_of(p + i, &a) + value_of(q + i, &b);
            const bytes made = codes_of(at_most(high, at_least(low, v)), &to, &wrong);
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
