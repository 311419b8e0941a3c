// Weights in the order that convolutions use them, made anew for every step of training.
//
// From (group, output, input, tap), with given strides, they become (group, `wide`
// outputs, `depth` inputs, tap, input, output), zeros after the last output.
#include "pack.h"

#include "call.h"
#include "half.h"
#include "turn.h"

typedef struct {
    int64_t out_step, taps, depth, wide;
    int64_t rows;  // from a tap to the next one: depth, up to an even number for pairs
    const float *end;  // of the weights
} shape;

// Contiguous columns, (input, tap), of `some` outputs out of WIDTH.
static void columns(const shape *s, const float *x, int64_t some, int64_t input,
                    int64_t count, float *out) {
    int64_t k = input, t = 0;
    for (int64_t start = 0; start < count; start += WIDTH) {
        const int64_t left = count - start, n = left < WIDTH ? left : WIDTH;
        vec rows[WIDTH];
        if (s->taps == 1 && some == WIDTH && n == WIDTH) {  // most squares are whole
            UNROLLED for (int i = 0; i < WIDTH; i++)
                rows[i] = load(x + i * s->out_step + start);
            turn(rows);
            UNROLLED for (int j = 0; j < WIDTH; j++)
                store(out + (k + j) * s->wide, rows[j]);
            k += WIDTH;
            continue;
        }
        UNROLLED for (int i = 0; i < WIDTH; i++) {
            const float *from = x + i * s->out_step + start;
            rows[i] = i >= some                   ? (vec){0}
                      : from + WIDTH <= s->end ? load(from)
                                                  : load_some(from, n);
        }
        turn(rows);
        for (int64_t j = 0; j < n; j++) {
            store(out + (t * s->rows + k) * s->wide, rows[j]);
            if (++t == s->taps) t = 0, k++;
        }
    }
}

// The inputs of one block for WIDTH outputs.
static void block(const pack_record *r, const shape *s, const float *x, int64_t some,
                  float *out) {
    if (r->in_step == s->taps)
        columns(s, x, some, 0, s->depth * s->taps, out);
    else
        for (int64_t k = 0; k < s->depth; k++)
            columns(s, x + k * r->in_step, some, k, s->taps, out);
}

// The same for all of a panel's outputs, `some`, where those of an input are side by side.
static void whole_rows(const pack_record *r, const shape *s, const float *x, int64_t some,
                       float *out) {
    for (int64_t k = 0; k < s->depth; k++, x += r->in_step, out += s->wide)
        for (int64_t lane = 0; lane < s->wide; lane += WIDTH) {
            const int64_t rest = some - lane;
            vec v = {0};
            if (rest > 0) v = load_up_to(x + lane, rest);
            store(out + lane, v);
        }
}

void pack_panel(const pack_record *r, const float *weights, int64_t panel, float *out) {
    const int64_t panels = (r->outs + r->wide - 1) / r->wide, taps = r->taps;
    const int64_t row = panel % panels * r->wide;
    const float *x = weights + panel / panels * r->group_step + row * r->out_step;
    for (int64_t start = 0; start < r->ins; start += r->depth) {
        const int64_t left = r->ins - start, n = left < r->depth ? left : r->depth;
        const shape s = {r->out_step, taps, n, r->wide, n + (n & r->half),
                         weights + r->groups * r->outs * r->ins * taps};
        const int by_rows = taps == 1 && r->out_step == 1;
        if (by_rows) whole_rows(r, &s, x + start * r->in_step, r->outs - row, out);
        for (int64_t lane = 0; lane < r->wide && !by_rows; lane += WIDTH) {
            const int64_t rest = r->outs - row - lane;
            const int64_t some = rest < 0 ? 0 : rest < WIDTH ? rest : WIDTH;
            block(r, &s, x + start * r->in_step + lane * r->out_step, some, out + lane);
        }
        for (int64_t t = 0; t < taps && s.rows > n; t++)
            memset(out + (t * s.rows + n) * r->wide, 0, 4 * (size_t)r->wide);
#if HAS_BF16
        if (r->half) pair_rows(out, s.rows * taps, r->wide);
#endif
        out += s.rows * taps * r->wide >> r->half;
    }
}

// Its weights are rows, of outputs or of inputs; those of each are contiguous.
lines panel_lines(const pack_record *r, const float *weights, int64_t panel) {
    const int64_t panels = (r->outs + r->wide - 1) / r->wide, row = panel % panels * r->wide;
    const int64_t left = r->outs - row, outs = left < r->wide ? left : r->wide;
    const int by_output = r->in_step == r->taps;
    const int64_t length = by_output ? r->ins * r->taps : outs * r->out_step;
    return (lines){
        .first = weights + panel / panels * r->group_step + row * r->out_step,
        .rows = by_output ? outs : r->ins,
        .row = length / LANES + 1,  // it may begin within one
        .step = by_output ? r->out_step : r->in_step,
    };
}

void pack(const void *record, const call *c, int64_t part, int64_t parts) {
    const pack_record *r = record;
    const int64_t panels = (r->outs + r->wide - 1) / r->wide;
    const int64_t size = (r->ins + (r->ins & r->half)) * r->taps * r->wide;
    const float *weights = at(c, r->x);
    SHARE(r->groups * panels);
    for (int64_t u = first; u < behind; u++) {
        if (u + 1 < behind) {
            const lines next = panel_lines(r, weights, u + 1);
            for (int64_t i = 0; i < next.rows; i++)
                for (int64_t j = 0; j < next.row; j++)
                    __builtin_prefetch(next.first + i * next.step + j * LANES, 0, 2);
        }
        pack_panel(r, weights, u, (float *)at(c, r->out) + u * size);
    }
}
