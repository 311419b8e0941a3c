// Gradients of convolutions of 3 x 3 taps to their weights by Winograd's algorithm.
//
// The transpose of winograd.c's: G'[sum over tiles of (A g A') * (B' d B)]G, with 16
// products for each pair of channels and tile of 2 x 2 places instead of 36. Chunks of
// tiles stay in cache, as in conv_weight.c, whose units these are; numbers do not depend
// on the threads.
#include "call.h"
#include "weight_tile.h"
#include "winograd.h"

enum { TAPS = 9, UNIT_OUTS = 2, WIDE = UNIT_OUTS * LANES };

INLINE void spread(vec a, vec b, vec *to, int step) {
    to[0] = a, to[step] = a + b, to[2 * step] = a - b, to[3 * step] = -b;
}

// A g A' of a block of channels at `count` tiles: as turn_inputs.
static void turn_slopes(const grid *m, int64_t height, int64_t width, const float *g,
                        int64_t first, int64_t count, float *to, int64_t apart) {
    float aside[4 * LANES];
    for (int64_t t = 0; t < count; t++, to += LANES) {
        const corner at = corner_of(m, first + t);
        const float *map = g + at.image * height * width * LANES;
        const float *patch = map + (at.y * width + at.x) * LANES;
        int64_t pitch = width * LANES;
        if (at.y + 2 > height || at.x + 2 > width) {
            cut_patch(map, height, width, at.y, at.x, 2, aside);
            patch = aside, pitch = 2 * LANES;
        }
        for (int v = 0; v < LANES; v += WIDTH) {
            const float *p = patch + v;
            vec rows[8], places[PLACES];
            UNROLLED for (int j = 0; j < 2; j++)
                spread(load(p + j * LANES), load(p + pitch + j * LANES), rows + j, 2);
            UNROLLED for (int i = 0; i < 4; i++)
                spread(rows[2 * i], rows[2 * i + 1], places + 4 * i, 1);
            UNROLLED for (int i = 0; i < PLACES; i++) store(to + v + i * apart, places[i]);
        }
    }
}

INLINE void gather(vec a, vec b, vec c, vec d, vec *to, int step) {
    const vec both = 0.5f * (b + c);
    to[0] = a + both, to[step] = 0.5f * (b - c), to[2 * step] = both + d;
}

// G' m G of sums (in, 16, WIDE): (in, 9, WIDE), in the same place.
static void turn_sums(float *sums, int64_t ins) {
    float *to = sums;
    for (int64_t i = 0; i < ins; i++, sums += PLACES * WIDE, to += TAPS * WIDE)
        for (int64_t v = 0; v < WIDE; v += WIDTH) {
            vec m[PLACES], rows[12], taps[TAPS];
            UNROLLED for (int k = 0; k < PLACES; k++) m[k] = load(sums + k * WIDE + v);
            UNROLLED for (int j = 0; j < 4; j++)
                gather(m[j], m[4 + j], m[8 + j], m[12 + j], rows + j, 4);
            UNROLLED for (int k = 0; k < 3; k++) {
                const vec *row = rows + 4 * k;
                gather(row[0], row[1], row[2], row[3], taps + 3 * k, 1);
            }
            UNROLLED for (int k = 0; k < TAPS; k++) store(to + k * WIDE + v, taps[k]);
        }
}

// Sums of one of the 16 over `count` tiles; outs: blocks of channels.
static void products_of_place(const float *inputs, int64_t ins, const float *slopes,
                              int64_t outs, int64_t count, float *sums) {
    const run all = {0, 0, (int32_t)count};
    const conv_weight_record steps = {
        .x_by = LANES, .g_by = LANES, .x_block = count * LANES, .g_block = count * LANES,
    };
    for (int64_t i = 0, some; i < ins; i += some) {
        some = ins_of_tile(i, ins - i);
        const float *x = inputs + i / LANES * steps.x_block + i % LANES;
        for (int64_t j = 0; j < outs; j += OUT_BLOCKS)
            weight_tiles(some, OUT_BLOCKS == 1 || j + 1 == outs, &steps, &all, &all + 1, x,
                         slopes + j * steps.g_block, sums + i * PLACES * WIDE + j * LANES,
                         PLACES * WIDE);
    }
}

void winograd_weight(const void *record, const call *c, int64_t part, int64_t parts) {
    const winograd_weight_record *r = record;
    const grid m = {r->height, r->width, r->before0, r->before1, r->rows, r->columns};
    const int64_t tiles = r->images * r->rows * r->columns;
    const int64_t out_blocks = (r->outs + LANES - 1) / LANES;
    const int64_t columns = (out_blocks + UNIT_OUTS - 1) / UNIT_OUTS;
    const int64_t rows = (r->ins + UNIT_BLOCKS * LANES - 1) / (UNIT_BLOCKS * LANES);
    const int64_t in_apart = UNIT_BLOCKS * r->chunk * LANES + GAP;
    const int64_t out_apart = UNIT_OUTS * r->chunk * LANES + GAP;
    float *sums = (float *)at(c, r->space) + part * r->room;
    float *inputs = sums + PLACES * UNIT_BLOCKS * LANES * WIDE;
    float *slopes = inputs + PLACES * in_apart;
    SHARE(columns * rows);
    for (int64_t u = first; u < behind; u++) {
        const int64_t block = u / rows * UNIT_OUTS, low = u % rows * UNIT_BLOCKS * LANES;
        const int64_t left = r->ins - low, outs_left = out_blocks - block;
        const int64_t ins = left < UNIT_BLOCKS * LANES ? left : UNIT_BLOCKS * LANES;
        const int64_t outs = outs_left < UNIT_OUTS ? outs_left : UNIT_OUTS;
        const float *x = (const float *)at(c, r->x) + low / LANES * r->x_block;
        const float *g = (const float *)at(c, r->g) + block * r->g_block;
        memset(sums, 0, sizeof(float) * ins * PLACES * WIDE);
        for (int64_t start = 0; start < tiles; start += r->chunk) {
            const int64_t rest = tiles - start, count = rest < r->chunk ? rest : r->chunk;
            const int64_t size = count * LANES;
            for (int64_t i = 0; i * LANES < ins; i++)
                turn_inputs(&m, x + i * r->x_block, start, count, inputs + i * size,
                            in_apart);
            for (int64_t j = 0; j < outs; j++)
                turn_slopes(&m, r->out_height, r->out_width, g + j * r->g_block, start,
                            count, slopes + j * size, out_apart);
            for (int64_t p = 0; p < PLACES; p++)
                products_of_place(inputs + p * in_apart, ins, slopes + p * out_apart, outs,
                                  count, sums + p * WIDE);
        }
        turn_sums(sums, ins);
        const int64_t behind_block = r->outs - block * LANES, row = r->ins * TAPS;
        write_weight(sums, WIDE, (float *)at(c, r->out) + block * LANES * row + low * TAPS,
                     row, behind_block < WIDE ? behind_block : WIDE, ins * TAPS);
    }
}
