// Results of exact sums: less what zero points add, times the scales; bias, residual,
// activation; then as floats, as codes, or as both.
#pragma once
#include "activation.h"
#include "codes.h"

enum { MOST_ROWS = 12 };  // of a tile: pixels

// Sums of LANES channels of a tile.
typedef struct {
    const int32_t *sums;   // (row, ...), `step` apart
    const int32_t *above;  // of each row: the sum of its codes; 0 where weights have no
                           // zero points
    int64_t step, first, rows, channel;
} sums_of_block;

INLINE ivec whole(const int32_t *p) {
    ivec v;
    memcpy(&v, p, sizeof v);
    return v;
}

// The byte that represents 0 in a row.
INLINE int32_t middle_of(const quantized_record *r, const call *c, int64_t row) {
    const int8_t *zeros = at(c, r->x_zero);
    return SHIFT + (zeros ? zeros[r->one ? 0 : row] : 0);
}

// Whether a bias is a multiple of the units of a sum, as files store it: then it belongs
// to the sum, which is rounded once.
INLINE int in_units(vec bias, vec unit, ivec *units) {
    const vec bound = all(4194303.f);
    const vec exact = choose(unit == 0, (vec){0}, bias / unit);
    const vec near = rounded(at_most(bound, at_least(-bound, exact)));
    const ivec other = (near * unit != bias) | (near > 4194302.f) | (near < -4194302.f);
    if (any(other)) return 0;
    *units = __builtin_convertvector(near, ivec);
    return 1;
}

// WIDTH channels from the i-th of the block on, all rows; activated where that is cheap.
INLINE void scaled(const quantized_record *r, const call *c, const sums_of_block *s,
                   int64_t i, int64_t count, vec least, vec most, float *y,
                   int64_t step) {
    const float *scales = at(c, r->x_scale), *residual = at(c, r->residual);
    const int64_t at_channel = s->channel + i;
    const vec of = load((const float *)at(c, r->scale) + at_channel);
    const ivec total = whole((const int32_t *)at(c, r->total) + at_channel);
    const ivec zero = whole((const int32_t *)at(c, r->zero) + at_channel);
    vec added = load((const float *)at(c, r->bias) + at_channel), unit = scales[0] * of;
    ivec units = {0};
    if (r->one && in_units(added, unit, &units)) added = (vec){0};
    ivec base = units - middle_of(r, c, 0) * total;
    const float *more = residual + s->first * r->out_row
                        + s->channel / LANES * r->out_block + i;
    for (int64_t row = 0; row < s->rows; row++) {
        if (!r->one) {
            unit = scales[s->first + row] * of;
            base = -middle_of(r, c, s->first + row) * total;
        }
        ivec sum = whole(s->sums + row * s->step + i) + base;
        if (s->above) sum -= s->above[row] * zero;
        vec v = __builtin_convertvector(sum, vec) * unit + added;
        if (residual)
            v += count - i >= WIDTH ? load(more + row * r->out_row)
                 : count > i        ? load_some(more + row * r->out_row, count - i)
                                    : (vec){0};
        store(y + row * step + i, at_most(most, at_least(least, v)));
    }
}

// The first n of LANES results; most blocks are whole, and a known size needs no call.
INLINE void put_some(float *out, const float *y, int64_t n) {
    if (n == LANES)
        memcpy(out, y, 4 * LANES);
    else
        memcpy(out, y, 4 * (size_t)n);
}

// The values that codes of results stand for, where floats are read.
INLINE void put_values(const quantized_record *r, const call *c, int64_t rows,
                       int64_t count, const float *y, float *out) {
    const scheme to = scheme_of(c, r->y_scale, r->y_zero, 0, r->y_low, r->y_high);
    for (int64_t row = 0; row < rows; row++) {
        float v[LANES];
        for (int64_t i = 0; i < LANES; i += WIDTH)
            store(v + i, (level_of(load(y + row * LANES + i), &to) - to.zero) * to.scale);
        put_some(out + row * r->out_row, v, count);
    }
}

// The codes of results, for products that read them; places after the last channel
// represent 0.
INLINE void put_codes(const quantized_record *r, const call *c, const sums_of_block *s,
                      const float *y) {
    const int32_t *places = (const int32_t *)at(c, r->places) + s->first;
    const scheme to = scheme_of(c, r->y_scale, r->y_zero, 0, r->y_low, r->y_high);
    uint8_t *out = (uint8_t *)at(c, r->codes) + s->channel;
    const int64_t left = r->outs - s->channel;
    ivec wrong = {0};
    for (int64_t row = 0; row < s->rows; row++) {
        for (int64_t i = 0; i < LANES; i += WIDTH) {
            const bytes b = codes_of(load(y + row * LANES + i), &to, &wrong);
            memcpy(out + places[row] + i, &b, WIDTH);
        }
        if (left < LANES)
            memset(out + places[row] + left, SHIFT + (int)to.zero[0], (size_t)(LANES - left));
    }
    if (any(wrong)) *(int64_t *)at(c, r->fault) = 1;
}

static void finish(const quantized_record *r, const call *c, const sums_of_block *s) {
    float y[MOST_ROWS * LANES];  // (row, LANES)
    const float low = (float)r->low, high = (float)r->high;
    const int is_clip = r->act == ACT_CLIP, is_relu = r->act == ACT_RELU;
    const vec least = all(is_relu ? 0 : is_clip ? low : -__builtin_inff());
    const vec most = all(is_clip ? high : __builtin_inff());
    const int64_t left = r->outs - s->channel;
    const int64_t count = r->out_row == LANES || left > LANES ? LANES : left;
    const int is_cheap = is_clip || is_relu || r->act == ACT_NONE;
    const int64_t place = s->first * r->out_row + s->channel / LANES * r->out_block;
    float *out = r->out < 0 ? 0 : (float *)at(c, r->out) + place;
    const int is_direct = out && count == LANES && is_cheap && !at(c, r->y_scale);
    float *to = is_direct ? out : y;
    const int64_t step = is_direct ? r->out_row : LANES;
    UNROLLED for (int64_t i = 0; i < LANES; i += WIDTH)
        scaled(r, c, s, i, count, least, most, to, step);
    if (is_direct) return;
    if (!is_cheap) activate(r->act, y, 0, s->rows, 1, 0, low, high);
    if (r->codes >= 0) put_codes(r, c, s, y);
    if (r->values >= 0)
        put_values(r, c, s->rows, count, y, (float *)at(c, r->values) + place);
    for (int64_t row = 0; row < s->rows && out; row++)
        put_some(out + row * r->out_row, y + row * LANES, count);
}
