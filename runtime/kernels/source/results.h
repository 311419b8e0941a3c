// Results of exact sums: less what zero points add, times the scales; bias, residual,
// activation; then as floats, as codes, or as both.
#pragma once
#include "activation.h"
#include "codes.h"

enum {
    MOST_ROWS = 12,  // of a tile: pixels
    MOST = 4         // and blocks of outputs
};

// What sums of the outputs of a group become: (sum + base) * unit + added, less what
// zero points of weights add. Where every row has a scale, unit and base are those of 1.
typedef struct {
    ALIGNED float unit[MOST * LANES], added[MOST * LANES];
    int32_t base[MOST * LANES], zero[MOST * LANES], is_shifted;
    vec least, most;   // of results that are activated, where that is cheap
    scheme to, bound;  // of their codes, and with the activation's bounds as steps
    // A code from a sum by one product: it is bits 15 to 22 of sum * steps + offset.
    ALIGNED float steps[MOST * LANES], offset[MOST * LANES];
    vec lowest, highest;  // of these
    int32_t doubt;        // units in the last place; 0 where codes are found by division
} outputs;

// Sums of LANES channels of a tile.
typedef struct {
    const outputs *to;     // of the group
    const int32_t *sums;   // (row, ...), `step` apart; with the base where it is of 1
    const int32_t *above;  // of each row: the sum of its codes; 0 where weights have no
                           // zero points
    int64_t step, first, rows, channel, lane;
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

// For up to 255.5 steps the product errs by less than 1024 / 2**24, and with numbers that
// are added by less than (1536 + 5 |added|) / 2**24: two roundings of its own, two to four of
// the numbers that it stands for.
INLINE void steps_of_outputs(outputs *o, int64_t count) {
    const vec to_byte = o->to.zero + (FLOOR + SHIFT + .5f);
    vec most = {0}, none = {0};
    for (int64_t i = 0; i < count; i += WIDTH) {
        const vec steps = load(o->unit + i) / o->to.scale,
                  added = load(o->added + i) / o->to.scale;
        store(o->steps + i, steps);
        store(o->offset + i, added + to_byte);
        most = at_least(most, at_least(-added, added));
        none += steps * 0 + added * 0;
    }
    const float added = greatest_of(most), doubt = added == 0 ? 2 : 4 + added / 64;
    o->doubt = sum_of(none) == 0 && doubt < 1024 ? (int32_t)doubt : 0;
    o->lowest = o->bound.low + to_byte;
    o->highest = o->bound.high + to_byte;
}

static void outputs_of(const quantized_record *r, const call *c, int64_t channel,
                       outputs *o) {
    const float *scale = (const float *)at(c, r->scale) + channel;
    const float *bias = (const float *)at(c, r->bias) + channel;
    const int32_t *total = (const int32_t *)at(c, r->total) + channel;
    const int64_t count = r->nr * LANES;
    memcpy(o->zero, (const int32_t *)at(c, r->zero) + channel, 4 * (size_t)count);
    o->is_shifted = 0;
    for (int64_t i = 0; i < count; i++) o->is_shifted |= o->zero[i];
    const int is_clip = r->act == ACT_CLIP;
    o->least = all(r->act == ACT_RELU ? 0 : is_clip ? (float)r->low : -__builtin_inff());
    o->most = all(is_clip ? (float)r->high : __builtin_inff());
    if (r->y_scale >= 0) {
        o->to = scheme_of(c, r->y_scale, r->y_zero, 0, r->y_low, r->y_high);
        o->bound = within_bounds(&o->to, o->least, o->most);
    }
    const vec step = all(r->one ? *(const float *)at(c, r->x_scale) : 1);
    const int32_t middle = r->one ? middle_of(r, c, 0) : 1;
    for (int64_t i = 0; i < count; i += WIDTH) {
        const vec unit = step * load(scale + i);
        vec added = load(bias + i);
        ivec units = {0};
        if (r->one && in_units(added, unit, &units)) added = (vec){0};
        const ivec base = units - middle * whole(total + i);
        store(o->unit + i, unit);
        store(o->added + i, added);
        memcpy(o->base + i, &base, sizeof base);
    }
    if (r->y_scale >= 0) steps_of_outputs(o, count);
}

// WIDTH channels from the i-th of the block on, all rows; activated where that is cheap.
INLINE void scaled(const quantized_record *r, const call *c, const sums_of_block *s,
                   int64_t i, int64_t count, float *y, int64_t step) {
    const vec least = s->to->least, most = s->to->most;
    const float *scales = at(c, r->x_scale), *residual = at(c, r->residual);
    const int64_t lane = s->lane + i;
    const vec of = load(s->to->unit + lane), added = load(s->to->added + lane);
    const ivec zero = whole(s->to->zero + lane), each = whole(s->to->base + lane);
    vec unit = of;
    ivec base = {0};
    const float *more = residual + s->first * r->out_row
                        + s->channel / LANES * r->out_block + i;
    for (int64_t row = 0; row < s->rows; row++) {
        if (!r->one) {
            unit = scales[s->first + row] * of;
            base = middle_of(r, c, s->first + row) * each;
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
INLINE void put_values(const quantized_record *r, const scheme *to, int64_t rows,
                       int64_t count, const float *y, float *out) {
    for (int64_t row = 0; row < rows; row++) {
        float v[LANES];
        for (int64_t i = 0; i < LANES; i += WIDTH)
            store(v + i, steps_of(load(y + row * LANES + i), to) * to->scale);
        put_some(out + row * r->out_row, v, count);
    }
}

// Where the codes of a pixel are, from the block's first channel on.
INLINE uint8_t *place_of(const quantized_record *r, const call *c,
                         const sums_of_block *s, int64_t row) {
    const int32_t *places = (const int32_t *)at(c, r->places) + s->first;
    return (uint8_t *)at(c, r->codes) + s->channel + places[row];
}

// Places after the last channel represent 0.
INLINE void fill_codes(const quantized_record *r, const call *c, const sums_of_block *s,
                       vec wrong) {
    const int64_t left = r->outs - s->channel;
    const int nothing = SHIFT + (int)s->to->to.zero[0];
    for (int64_t row = 0; row < s->rows && left < LANES; row++)
        memset(place_of(r, c, s, row) + left, nothing, (size_t)(LANES - left));
    if (is_any_nan(wrong)) *(int64_t *)at(c, r->fault) = 1;
}

// The codes of results, for products that read them.
INLINE void put_codes(const quantized_record *r, const call *c, const sums_of_block *s,
                      const float *y) {
    vec wrong = {0};
    for (int64_t row = 0; row < s->rows; row++)
        for (int64_t i = 0; i < LANES; i += WIDTH) {
            const bytes b = codes_of(load(y + row * LANES + i), &s->to->to, &wrong);
            memcpy(place_of(r, c, s, row) + i, &b, WIDTH);
        }
    fill_codes(r, c, s, wrong);
}

// Codes of a block, by division.
static void divided_codes(const quantized_record *r, const call *c,
                          const sums_of_block *s) {
    vec wrong = {0};
    UNROLLED for (int64_t i = 0; i < LANES; i += WIDTH) {
        const vec unit = load(s->to->unit + s->lane + i),
                  added = load(s->to->added + s->lane + i);
        for (int64_t row = 0; row < s->rows; row++) {
            const ivec sum = whole(s->sums + row * s->step + i);
            const vec v = __builtin_convertvector(sum, vec) * unit + added;
            const bytes b = codes_of(v, &s->to->bound, &wrong);
            memcpy(place_of(r, c, s, row) + i, &b, WIDTH);
        }
    }
    fill_codes(r, c, s, wrong);
}

INLINE coding coding_of(const outputs *to, int64_t lane) {
    return (coding){load(to->steps + lane), load(to->offset + lane), to->lowest,
                    to->highest, doubting(to->doubt)};
}

// The codes of a block, where nothing else is wanted of it.
static void codes_alone(const quantized_record *r, const call *c,
                        const sums_of_block *s) {
    const outputs *to = s->to;
    const int32_t *places = (const int32_t *)at(c, r->places) + s->first;
    uint8_t *out = (uint8_t *)at(c, r->codes) + s->channel;
    int is_divided = !to->doubt;
    UNROLLED for (int64_t i = 0; i < LANES && !is_divided; i += WIDTH) {
        const coding by = coding_of(to, s->lane + i);
        ivec nearest = (ivec){0} + INT32_MAX;
        for (int64_t row = 0; row < s->rows; row++) {
            const bytes b =
                product_codes(whole(s->sums + row * s->step + i), &by, &nearest);
            memcpy(out + places[row] + i, &b, WIDTH);
        }
        is_divided = is_near(nearest, to->doubt);
    }
    if (is_divided)
        divided_codes(r, c, s);
    else if (r->outs - s->channel < LANES)
        fill_codes(r, c, s, (vec){0});
}

// Whether nothing but codes is wanted of results and zero points of weights add nothing.
// Rounding keeps order, so that bounds of results are bounds of codes.
INLINE int is_of_codes_alone(const quantized_record *r, const outputs *to) {
    return r->codes >= 0 && r->out < 0 && r->values < 0 && r->one && r->residual < 0
           && !to->is_shifted
           && (r->act == ACT_CLIP || r->act == ACT_RELU || r->act == ACT_NONE);
}

static void finish(const quantized_record *r, const call *c, const sums_of_block *s) {
    const int is_cheap =
        r->act == ACT_CLIP || r->act == ACT_RELU || r->act == ACT_NONE;
    ALIGNED float y[MOST_ROWS * LANES];  // (row, LANES)
    const int64_t left = r->outs - s->channel;
    const int64_t count = r->out_row == LANES || left > LANES ? LANES : left;
    const int64_t place = s->first * r->out_row + s->channel / LANES * r->out_block;
    float *out = r->out < 0 ? 0 : (float *)at(c, r->out) + place;
    const int is_direct = out && count == LANES && is_cheap && !at(c, r->y_scale);
    float *to = is_direct ? out : y;
    const int64_t step = is_direct ? r->out_row : LANES;
    UNROLLED for (int64_t i = 0; i < LANES; i += WIDTH)
        scaled(r, c, s, i, count, to, step);
    if (is_direct) return;
    if (!is_cheap)
        activate(r->act, y, 0, s->rows, 1, 0, (float)r->low, (float)r->high);
    if (r->codes >= 0) put_codes(r, c, s, y);
    if (r->values >= 0)
        put_values(r, &s->to->to, s->rows, count, y,
                   (float *)at(c, r->values) + place);
    for (int64_t row = 0; row < s->rows && out; row++)
        put_some(out + row * r->out_row, y + row * LANES, count);
}

// Results of the blocks of a tile. above: as in `sums_of_block`.
static void finish_tile(const quantized_record *r, const call *c, const outputs *to,
                        const int32_t *sums, const int32_t *above, int64_t channel,
                        int64_t first, int64_t rows) {
    const int is_alone = is_of_codes_alone(r, to);
    for (int64_t j = 0; j < r->nr && channel + j * LANES < r->outs; j++) {
        const sums_of_block s = {to, sums + j * LANES, above, r->nr * LANES,
                                 first, rows, channel + j * LANES, j * LANES};
        if (is_alone)
            codes_alone(r, c, &s);
        else
            finish(r, c, &s);
    }
}
