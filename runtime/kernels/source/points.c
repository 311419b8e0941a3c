// Contiguous pixels of a convolution of one tap, times one block of outputs, with vectors of 8.
//
// As in conv_tile.c, whose tiles each begin anew: that takes as long as the products of 16
// channels. Of a block whose second half is beyond the channels, only the first is computed.
#include "conv_tile.h"

#if WIDTH == 8
enum { SUMS = 12 };  // vectors

// R pixels times N vectors of outputs.
INLINE void multiply(const int R, const int N, const piece *p, const float *x, int32_t to,
                     asked *ahead) {
    const conv_record *record = p->record;
    const int64_t blocks = p->blocks, rest = p->runs[p->t->last].length;
    const int is_short = blocks == 1 && rest <= SHORT;
    const float *w = p->weight;
    vec acc[MOST_PIXELS][MOST_VECTORS], sums[MOST_PIXELS][PARTS];
    UNROLLED for (int j = 0; j < N; j++) {
        const vec b = is_short ? load(p->bias + WIDTH * j) : (vec){0};
        UNROLLED for (int r = 0; r < R; r++) acc[r][j] = b;
    }
    for (int64_t block = 0; block < blocks; block++, x += record->x_step) {
        if (block && block % (SUMMED / LANES) == 0) {
            UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < N; j++) {
                sums[r][j] = block > SUMMED / LANES ? sums[r][j] + acc[r][j] : acc[r][j];
                acc[r][j] = (vec){0};
            }
        }
        ask_ahead(ahead, LANES);
        if (R > 2 && block + 2 < blocks) ask_for_block(R, LANES, x + 2 * record->x_step);
        const float *from = x, *end = x + (block + 1 < blocks ? LANES : rest);
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < N; j++)
            acc[r][j] = in_register(acc[r][j]);
        for (; from < end; from++, w += LANES) {
            vec ws[PARTS];
            UNROLLED for (int j = 0; j < N; j++)
                ws[j] = in_register(load(w + WIDTH * j));
            UNROLLED for (int r = 0; r < R; r++) {
                const vec s = all(from[r * LANES]);
                UNROLLED for (int j = 0; j < N; j++) acc[r][j] += s * ws[j];
            }
        }
    }
    if (blocks > SUMMED / LANES) {
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < N; j++)
            acc[r][j] += sums[r][j];
    }
    if (!is_short) add_bias(R, N, acc, p);
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = N; j < PARTS; j++)
        store(p->out + to + r * LANES + j * WIDTH, (vec){0});
    leave(R, N, acc, p, 1, &to);
}

INLINE void each_point(const int N, const piece *p, int32_t from, int32_t to,
                       int32_t count) {
    const int32_t most = SUMS / N;
    asked ahead = p->ahead;
    const float *x = p->x + from;
    for (int32_t parts = (count + most - 1) / most; parts > 0; parts--) {
        const int32_t some = count == parts * most ? most : count / parts;
        switch (some) {
#define SOME(R) case R: multiply(R, N, p, x, to, &ahead); break;
            SOME(1) SOME(2) SOME(3) SOME(4) SOME(5) SOME(6)
        default:
            if (N == 1) switch (some) { SOME(7) SOME(8) SOME(9) SOME(10) SOME(11) SOME(12) }
#undef SOME
        }
        count -= some, x += some * LANES, to += some * LANES;
    }
}

void points(const piece *p, int32_t from, int32_t to, int32_t count) {
    if (p->is_half)
        each_point(1, p, from, to, count);
    else
        each_point(PARTS, p, from, to, count);
}
#endif
