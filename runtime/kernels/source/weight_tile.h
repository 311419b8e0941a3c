// Tiles of gradients to weights: channels in times blocks of channels out, in registers.
#pragma once
#include "records.h"
#include "turn.h"

#if WIDTH == 16  // accumulators, vectors of channels out and one number fit the registers
enum { INS = 8, OUT_BLOCKS = 2 };
#define EACH_INS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
enum { INS = 6, OUT_BLOCKS = 1 };
#define EACH_INS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
enum { UNIT_BLOCKS = 4 };

typedef struct {
    int32_t x, g, count;
} run;

// blocks: of channels out; 1 where a second one is missing.
INLINE void weight_tile(const int ins, const int blocks, const conv_weight_record *r,
                        const run *runs, const run *end, const float *x, const float *g,
                        float *sums, int64_t step) {
    const int n = blocks * PARTS;
    vec acc[INS][OUT_BLOCKS * PARTS];
    UNROLLED for (int i = 0; i < ins; i++) UNROLLED for (int j = 0; j < n; j++)
        acc[i][j] = (vec){0};
    const int64_t x_by = r->x_by, g_by = r->g_by, g_block = r->g_block;
    for (; runs < end; runs++) {
        const float *xs = x + runs->x, *gs = g + runs->g;
        for (int64_t k = runs->count; k > 0; k--, xs += x_by, gs += g_by) {
            vec v[OUT_BLOCKS * PARTS];
            UNROLLED for (int j = 0; j < n; j++)
                v[j] = load(gs + j / PARTS * g_block + j % PARTS * WIDTH);
            // Of the next channels; smaller tiles fill the first cache with a chunk alone.
            if (WIDTH == 16) __builtin_prefetch(xs + r->x_block, 0, 3);
            UNROLLED for (int i = 0; i < ins; i++) {
                const vec s = all(xs[i]);
                UNROLLED for (int j = 0; j < n; j++) acc[i][j] = s * v[j] + acc[i][j];
            }
        }
    }
    UNROLLED for (int i = 0; i < ins; i++) UNROLLED for (int j = 0; j < n; j++) {
        float *to = sums + i * step + j * WIDTH;
        store(to, load(to) + acc[i][j]);
    }
}

// Channels in of the next tile, of `left` ones: those of a block are in tiles of about
// the same size, as few accumulators would wait for each other.
INLINE int64_t ins_of_tile(int64_t channel, int64_t left) {
    const int64_t in_block = LANES - channel % LANES, ins = left < in_block ? left : in_block;
    const int64_t tiles = (ins + INS - 1) / INS;
    return (ins + tiles - 1) / tiles;
}

INLINE void weight_tiles(int64_t ins, const int is_one, const conv_weight_record *r,
                         const run *runs, const run *end, const float *x, const float *g,
                         float *sums, int64_t step) {
#define ONE(N) case N: weight_tile(N, 1, r, runs, end, x, g, sums, step); break;
#define ALL(N) case N: weight_tile(N, OUT_BLOCKS, r, runs, end, x, g, sums, step); break;
    if (is_one)
        switch (ins) { EACH_INS(ONE) }
    else
        switch (ins) { EACH_INS(ALL) }
#undef ONE
#undef ALL
}

// sums (in, tap, wide) -> out (out, in, tap), whose rows have `row` numbers
static inline void write_weight(const float *sums, int64_t wide, float *out, int64_t row,
                                int64_t outs, int64_t count) {
    for (int64_t start = 0; start < count; start += WIDTH) {
        const int64_t left = count - start, some = left < WIDTH ? left : WIDTH;
        for (int64_t low = 0; low < outs; low += WIDTH) {
            vec rows[WIDTH];
            UNROLLED for (int i = 0; i < WIDTH; i++)
                rows[i] = i < some ? load(sums + (start + i) * wide + low) : (vec){0};
            turn(rows);
            float *to = out + low * row + start;
            UNROLLED for (int i = 0; i < WIDTH; i++) {
                if (low + i >= outs) break;
                if (some == WIDTH)
                    store(to + i * row, rows[i]);
                else
                    store_some(to + i * row, rows[i], some);
            }
        }
    }
}
