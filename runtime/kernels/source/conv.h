// One tile of a convolution or a product: see conv.c, which computes it.
#pragma once
#include "records.h"
#include "tiles.h"

enum { MOST_PIXELS = 14, MOST_BLOCKS = 4 };  // of a tile

// Fields that the kernel reads: blocks, nr, x_step, weight_step, out_step, act.
typedef struct {
    const float *x, *weight, *bias, *residual;
    float *out;
    const float *ahead;  // weights that are read later,
    int64_t lines;       // so many cache lines of them to ask for,
    int64_t pace;        // so many for 256 products
    const int32_t *from, *to;
    const run *runs;
    const tile *t;
    const conv_record *record;
} piece;

void conv_tile(const piece *p);
void conv_tile_half(const piece *p);  // where the processor has bfloat16
int64_t tile_rows(int64_t blocks);
