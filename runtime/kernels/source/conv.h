// One tile of a convolution or a product: see conv.c, which computes it.
#pragma once
#include "records.h"
#include "tiles.h"

enum { MOST_PIXELS = 14, MOST_BLOCKS = 4 };  // of a tile

// Weights that are read later: `lines` cache lines to ask for, `pace` for 256 products.
// They lie in rows of `row` lines; `left` are left of the first, `jump` floats lead from
// the last line of one to the next.
typedef struct {
    const float *at;
    int64_t lines, pace, row, left, jump;
} asked;

// Fields that the kernel reads: blocks, nr, x_step, weight_step, out_step, act.
typedef struct {
    const float *x, *weight, *bias, *residual;
    float *out;
    asked ahead;
    const int32_t *from, *to;
    const run *runs;
    const tile *t;
    const conv_record *record;
} piece;

void conv_tile(const piece *p);
void conv_tile_half(const piece *p);  // where the processor has bfloat16
int64_t tile_rows(int64_t blocks);
