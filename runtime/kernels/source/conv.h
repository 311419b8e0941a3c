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
// blocks: those of the input channels that a tile sums, from x and weight on. Where they
// are a slice, `kept` has the sums of those before it, and gets its own for the next.
// is_half: whether only the first half of the last block are outputs.
// follows, is_followed: whether there are blocks before the slice, and behind it.
typedef struct {
    const float *x, *weight, *bias, *residual;
    float *out, *kept;
    int64_t blocks;
    int is_half, follows, is_followed;
    asked ahead;
    const int32_t *from, *to;
    const run *runs;
    const tile *t;
    const conv_record *record;
} piece;

void conv_tile(const piece *p);
void conv_tile_half(const piece *p);  // where the processor has bfloat16
void row_tile(const piece *p);        // with vectors of 8
// The same: `count` contiguous pixels of one tap, the first at `from`, of one block of
// outputs, to the results from `to` on.
void points(const piece *p, int32_t from, int32_t to, int32_t count);
int64_t tile_rows(int64_t blocks);
