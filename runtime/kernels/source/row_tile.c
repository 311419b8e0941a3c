// Tiles of products, with vectors of 8: rows of a matrix that are equally far apart, times
// one run of weights.
//
// As in conv_tile.c, without what tiles of pixels need beside it: that leaves a loop in which
// all addresses have registers.
#include "conv_tile.h"

#if WIDTH == 8
INLINE void multiply(const int R, const int NR, const int stride, const piece *p) {
    const int n = NR * PARTS;
    const run *only = p->runs + p->t->last;
    const int64_t pitch = stride ? stride : p->t->stride, length = only->length;
    vec sums[MOST_PIXELS][MOST_VECTORS], acc[MOST_PIXELS][MOST_VECTORS];
    asked ahead = p->ahead;
    const float *w = p->weight + (int64_t)only->weight * (NR * LANES);
    const float *third[(MOST_PIXELS + 2) / 3];  // three rows share a pointer
    UNROLLED for (int r = 0; r < R; r += 3)
        third[r / 3] = p->x + only->x + p->from[0] + r * pitch;
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
        sums[r][j] = (vec){0};
    ask_for_results(R, NR, p);
    for (int64_t done = 0; done < length; done += SUMMED) {
        const int64_t some = length - done < SUMMED ? length - done : SUMMED;
        ask_ahead(&ahead, some);
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
            acc[r][j] = (vec){0};
        for (int64_t k = some; k > 0; k--, w += NR * LANES) {
            vec ws[MOST_VECTORS];
            UNROLLED for (int j = 0; j < n; j++) ws[j] = weight_at(R, n, w + WIDTH * j);
            UNROLLED for (int r = 0; r < R; r++) {
                const vec s = all(third[r / 3][r % 3 * pitch]);
                UNROLLED for (int j = 0; j < n; j++) acc[r][j] += s * ws[j];
            }
            UNROLLED for (int r = 0; r < R; r += 3) third[r / 3]++;
        }
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
            sums[r][j] += acc[r][j];
    }
    add_bias(R, n, sums, p);
    leave(R, n, sums, p, 0, p->to);
}

DEFINE_TILES

void row_tile(const piece *p) {
    KERNELS[p->t->stride == LANES][p->t->count][p->record->nr](p);
}
#endif
