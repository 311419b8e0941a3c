// Tiles of convolutions and products whose operands are bfloat16, and sums float32.
//
// As in conv.c, two channels at a time: x has the channels of a pixel side by side, an
// even number of them, weights have pairs (group of NR blocks, input / 2, 16 NR outputs,
// 2). A record's steps between groups of channels are in places of 4 bytes.
#include "conv_tile.h"
#include "half.h"

#if HAS_BF16
enum { AHEAD = 2048 };  // of weights: numbers that are asked for before they are used

INLINE void multiply(const int R, const int NR, const int stride, const piece *p) {
    const conv_record *record = p->record;
    vec acc[MOST_PIXELS][MOST_VECTORS];
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < NR; j++)
        acc[r][j] = (vec){0};
    ask_for_results(R, NR, p);
    const uint16_t *x = (const uint16_t *)p->x, *weight = (const uint16_t *)p->weight;
    asked ahead = p->ahead;
    for (int64_t block = 0; block < record->blocks; block++) {
        const int is_last = block == record->blocks - 1;
        const run *runs = p->runs + (is_last ? p->t->last : p->t->runs);
        const run *end = runs + (is_last ? p->t->n_last : p->t->n_runs);
        for (; runs < end; runs++) {
            const uint16_t *at[MOST_PIXELS];
            UNROLLED for (int r = 0; r < R; r++)
                at[r] = x + runs->x + (stride ? p->from[0] + r * stride : p->from[r]);
            const uint16_t *w = weight + (int64_t)runs->weight * (NR * LANES);
            ask_ahead(&ahead, runs->length / 2);
            for (int64_t k = 0; k < runs->length; k += 2, w += 2 * NR * LANES) {
                __m512bh ws[MOST_BLOCKS];
                UNROLLED for (int j = 0; j < NR; j++)
                    ws[j] = load_pairs(w + 2 * LANES * j);
                if (R > 2) {  // with fewer rows it costs more than it saves
                    UNROLLED for (int j = 0; j < NR; j++)
                        __builtin_prefetch(w + AHEAD + 2 * LANES * j, 0, 3);
                }
                UNROLLED for (int r = 0; r < R; r++) {
                    const __m512bh s =
                        all_pairs(stride ? at[0] + r * stride + k : at[r] + k);
                    UNROLLED for (int j = 0; j < NR; j++)
                        acc[r][j] = add_products(acc[r][j], s, ws[j]);
                }
            }
        }
        x += record->x_step;
        weight += record->weight_step * (NR * LANES);
    }
    add_bias(R, NR * PARTS, acc, p);
    leave(R, NR * PARTS, acc, p, 0, p->to);
}

DEFINE_TILES

void conv_tile_half(const piece *p) {
    KERNELS[p->t->stride == LANES][p->t->count][p->record->nr](p);
}
#endif
