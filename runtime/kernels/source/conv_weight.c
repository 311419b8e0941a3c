// Gradients of convolutions to their weights, from maps in blocks of 16 channels.
//
// A tile is some channels in times some blocks of channels out, for one tap, held in
// registers while it goes through runs of places. Runs are in chunks of places, whose
// elements stay in the first cache for all channels and taps; the sums of a chunk are
// added to those of the chunks before. A unit is a tile's channels out and up to
// UNIT_BLOCKS blocks of channels in, so that numbers do not depend on the threads.
#include "call.h"
#include "weight_tile.h"

void conv_weight(const void *record, const call *c, int64_t part, int64_t parts) {
    const conv_weight_record *r = record;
    const run *runs = at(c, r->runs);
    const int32_t *starts = at(c, r->starts);  // of every chunk's every tap
    const int64_t taps = r->taps, wide = OUT_BLOCKS * LANES;
    const int64_t out_blocks = (r->outs + LANES - 1) / LANES;
    const int64_t columns = (out_blocks + OUT_BLOCKS - 1) / OUT_BLOCKS;
    const int64_t rows = (r->ins + UNIT_BLOCKS * LANES - 1) / (UNIT_BLOCKS * LANES);
    float *sums = (float *)at(c, r->space) + part * r->room;
    SHARE(columns * rows);
    for (int64_t u = first; u < behind; u++) {
        const int64_t block = u / rows * OUT_BLOCKS, low = u % rows * UNIT_BLOCKS * LANES;
        const int64_t left = r->ins - low;
        const int64_t ins = left < UNIT_BLOCKS * LANES ? left : UNIT_BLOCKS * LANES;
        const int is_one = OUT_BLOCKS == 1 || block + 1 == out_blocks;
        const float *g = (const float *)at(c, r->g) + block * r->g_block;
        memset(sums, 0, sizeof(float) * ins * taps * wide);
        for (int64_t chunk = 0; chunk < r->chunks; chunk++)
            for (int64_t i = 0, some; i < ins; i += some) {
                const int64_t channel = low + i;
                some = ins_of_tile(channel, ins - i);
                const float *x = (const float *)at(c, r->x)
                                 + channel / LANES * r->x_block + channel % LANES;
                for (int64_t t = 0; t < taps; t++) {
                    const int32_t *s = starts + chunk * taps + t;
                    if (s[0] == s[1]) continue;
                    float *to = sums + (i * taps + t) * wide;
                    const run *from = runs + s[0], *end = runs + s[1];
                    weight_tiles(some, is_one, r, from, end, x, g, to, taps * wide);
                }
            }
        const int64_t outs = r->outs - block * LANES < wide ? r->outs - block * LANES : wide;
        float *out = (float *)at(c, r->out) + block * LANES * r->ins * taps + low * taps;
        write_weight(sums, wide, out, r->ins * taps, outs, ins * taps);
    }
}

// The same where every channel has weights of its own: out (channel, tap). Shares are
// blocks of channels.
void window_weight(const void *record, const call *c, int64_t part, int64_t parts) {
    const window_weight_record *r = record;
    const run *runs = at(c, r->runs);
    const int32_t *starts = at(c, r->starts);
    float *sums = (float *)at(c, r->space) + part * r->room;
    SHARE((r->channels + LANES - 1) / LANES);
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * r->x_block;
        const float *g = (const float *)at(c, r->g) + u * r->g_block;
        memset(sums, 0, sizeof(float) * r->taps * LANES);
        for (int64_t k = 0; k < r->chunks * r->taps; k++) {
            vec acc[4][PARTS] = {{{0}}};
            for (const run *s = runs + starts[k]; s < runs + starts[k + 1]; s++) {
                const float *xs = x + s->x, *gs = g + s->g;
                const int64_t x_by = r->x_by, g_by = r->g_by;
                int64_t i = s->count;
                for (; i >= 4; i -= 4, xs += 4 * x_by, gs += 4 * g_by)
                    UNROLLED for (int q = 0; q < 4; q++)
                        UNROLLED for (int j = 0; j < PARTS; j++)
                            acc[q][j] += load(xs + q * x_by + j * WIDTH)
                                         * load(gs + q * g_by + j * WIDTH);
                for (; i > 0; i--, xs += x_by, gs += g_by)
                    UNROLLED for (int j = 0; j < PARTS; j++)
                        acc[0][j] += load(xs + j * WIDTH) * load(gs + j * WIDTH);
            }
            float *to = sums + k % r->taps * LANES;
            UNROLLED for (int j = 0; j < PARTS; j++)
                store(to + j * WIDTH, load(to + j * WIDTH) + ((acc[0][j] + acc[1][j])
                                                              + (acc[2][j] + acc[3][j])));
        }
        const int64_t left = r->channels - u * LANES, some = left < LANES ? left : LANES;
        float *out = (float *)at(c, r->out) + u * LANES * r->taps;
        for (int64_t i = 0; i < some; i++)
            for (int64_t t = 0; t < r->taps; t++) out[i * r->taps + t] = sums[t * LANES + i];
    }
}
