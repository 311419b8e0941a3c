// Tiles of gradients to weights: channels in times blocks of channels out, in registers.
#pragma once
#include "records.h"
#include "turn.h"

#if WIDTH == 16
enum { INS = 8, OUT_BLOCKS = 2 };
#else
enum { INS = 4, OUT_BLOCKS = 1 };
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
            __builtin_prefetch(xs + r->x_block, 0, 3);  // of the next channels
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

// The tile of INS channels in, or of half as many.
INLINE void weight_tiles(const int is_few, const int is_one, const conv_weight_record *r,
                         const run *runs, const run *end, const float *x, const float *g,
                         float *sums, int64_t step) {
    if (is_few && is_one)
        weight_tile(INS / 2, 1, r, runs, end, x, g, sums, step);
    else if (is_few)
        weight_tile(INS / 2, OUT_BLOCKS, r, runs, end, x, g, sums, step);
    else if (is_one)
        weight_tile(INS, 1, r, runs, end, x, g, sums, step);
    else
        weight_tile(INS, OUT_BLOCKS, r, runs, end, x, g, sums, step);
}

// sums (in, tap, OUT_BLOCKS * LANES) -> out (out, in, tap)
static inline void write_weight(const conv_weight_record *r, const float *sums, float *out,
                                int64_t outs, int64_t count) {
    const int64_t wide = OUT_BLOCKS * LANES, row = r->ins * r->taps;
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
