// Windows over maps in blocks of 16 channels: depthwise convolution and pooling.
//
// Tiles and taps are those of conv.c; each channel reads its own channel only, so that a
// tile of R pixels is R times PARTS vectors and a tap is a vector of weights.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__AVX512F__)
// Loads that GCC carries from three taps over to the next ones are spilled.
#pragma GCC optimize("no-predictive-commoning")
#endif
#include "activation.h"
#include "call.h"
#include "tiles.h"

// Sums, three vectors of weights and what the places of one have read fit the registers.
enum { ROWS = WIDTH == 16 ? 14 : WIDTH == 8 ? 9 : 6, MOST_AT_ONCE = 8 };

typedef struct {
    const float *x, *weight, *bias;
    float *out;
    const int32_t *from;
    const run *runs, *end;
    const window_record *record;
} piece;

// One vector of the channels: a run is a stretch of taps that are contiguous, LANES
// floats each. stride: floats from a pixel's input to the next one's, so that what one
// pixel has loaded is there for its neighbours; 0 where a table gives them.
INLINE void weigh(const int R, const int stride, const int v, const piece *p) {
    vec acc[ROWS], bias = load(p->bias + v * WIDTH);
    UNROLLED for (int i = 0; i < R; i++) acc[i] = bias;
    for (const run *t = p->runs; t < p->end; t++) {
        const float *w = p->weight + t->weight + v * WIDTH;
        const float *x = p->x + t->x + v * WIDTH + (stride ? p->from[0] : 0);
        int64_t k = 0;
        for (; stride && k + 3 * LANES <= t->length; k += 3 * LANES) {
            const vec first = load(w + k), second = load(w + k + LANES),
                      third = load(w + k + 2 * LANES);
            UNROLLED for (int i = 0; i < R; i++) {
                const float *at = x + i * stride + k;
                acc[i] += first * load(at);
                acc[i] += second * load(at + LANES);
                acc[i] += third * load(at + 2 * LANES);
            }
        }
        for (; k < t->length; k += LANES) {
            const vec tap = load(w + k);
            UNROLLED for (int i = 0; i < R; i++)
                acc[i] += tap * load(x + (stride ? i * stride : p->from[i]) + k);
        }
    }
    const window_record *r = p->record;
    activate_cheaply(1, R, 0, acc, r->act, r->low, r->high);
    UNROLLED for (int i = 0; i < R; i++) store(p->out + i * LANES + v * WIDTH, acc[i]);
}

// The maximum or the sum of R pixels' taps, at most MOST_AT_ONCE.
// scales: a factor of each pixel's sum; 0 where all have one.
INLINE void collect(const int R, const int is_max, const window_record *r,
                    const float *x, const float *scales, float *out,
                    const int32_t *from, const int32_t *to, const run *runs,
                    const run *end) {
    UNROLLED for (int v = 0; v < PARTS; v++) {
        const float *at[MOST_AT_ONCE];
        vec acc[MOST_AT_ONCE];
        UNROLLED for (int i = 0; i < R; i++) {
            at[i] = x + from[i] + v * WIDTH;
            acc[i] = all(is_max ? -__builtin_inff() : 0);
        }
        for (const run *t = runs; t < end; t++)
            for (int64_t k = t->x; k < t->x + t->length; k += LANES)
                UNROLLED for (int i = 0; i < R; i++) {
                    const vec y = load(at[i] + k);
                    acc[i] = is_max ? greater(acc[i], y) : acc[i] + y;
                }
        UNROLLED for (int i = 0; i < R; i++) {
            if (!is_max) acc[i] *= scales ? scales[i] : (float)r->scale;
            store(out + to[i] + v * WIDTH, acc[i]);
        }
    }
}

#if WIDTH == 16
#define TILES(X, S)                                                                  \
    X(1, S) X(2, S) X(3, S) X(4, S) X(5, S) X(6, S) X(7, S) X(8, S) X(9, S) X(10, S)  \
    X(11, S) X(12, S) X(13, S) X(14, S)
#elif WIDTH == 8
#define TILES(X, S) \
    X(1, S) X(2, S) X(3, S) X(4, S) X(5, S) X(6, S) X(7, S) X(8, S) X(9, S)
#else
#define TILES(X, S) X(1, S) X(2, S) X(3, S) X(4, S) X(5, S) X(6, S)
#endif

#define DEFINE(R, S)                                                  \
    static void tile_##R##_##S(const piece *p) {                      \
        UNROLLED for (int v = 0; v < PARTS; v++) weigh(R, S, v, p);   \
    }
#define NAMED(R, S) [S / LANES][R] = tile_##R##_##S,
TILES(DEFINE, 0)
TILES(DEFINE, 16)
TILES(DEFINE, 32)
static void (*const KERNELS[3][ROWS + 1])(const piece *) = {
    TILES(NAMED, 0) TILES(NAMED, 16) TILES(NAMED, 32)};

static void weighed_tile(const window_record *r, const tile *t, const float *x,
                         const float *w, const float *bias, float *out,
                         const int32_t *from, const int32_t *to, const run *runs) {
    float aside[ROWS * LANES];
    const int is_row = to[t->first + t->count - 1] - to[t->first] == (t->count - 1) * LANES;
    float *y = is_row ? out + to[t->first] : aside;
    const piece p = {x, w, bias, y, from + t->first, runs + t->runs,
                     runs + t->runs + t->n_runs, r};
    KERNELS[t->stride / LANES][t->count](&p);
    if (!is_cheap(r->act))
        activate(r->act, y, 0, t->count, 1, 0, (float)r->low, (float)r->high);
    for (int64_t i = 0; !is_row && i < t->count; i++)
        memcpy(out + to[t->first + i], aside + i * LANES, 4 * LANES);
}

INLINE void collected_tile(const int is_max, const window_record *r, const tile *t,
                           const float *x, const float *scales, float *out,
                           const int32_t *from, const int32_t *to, const run *runs) {
    const run *first = runs + t->runs, *end = first + t->n_runs;
    int64_t i = t->first, left = t->count;
#define SOME(R)                                                               \
    for (; left >= R; left -= R, i += R)                                      \
        collect(R, is_max, r, x, scales ? scales + i : 0, out, from + i, to + i, first, \
                end);
    SOME(8) SOME(4) SOME(2) SOME(1)
#undef SOME
}

void window(const void *record, const call *c, int64_t part, int64_t parts) {
    const window_record *r = record;
    const tile *tiles = at(c, r->tiles);
    const int32_t *from = at(c, r->from), *to = at(c, r->to);
    const run *runs = at(c, r->runs);
    const float *weight = at(c, r->weight);  // or a factor of each pixel's sum
    SHARE(r->blocks * r->n_tiles);
    for (int64_t u = first; u < behind; u++) {
        const int64_t b = u / r->n_tiles;
        const tile *t = tiles + u % r->n_tiles;
        const float *x = (const float *)at(c, r->x) + b * r->x_step;
        float *out = (float *)at(c, r->out) + b * r->out_step;
        if (r->mode == WINDOW_WEIGHTS)
            weighed_tile(r, t, x, weight + b * r->weight_step,
                         (const float *)at(c, r->bias) + b * LANES, out, from, to, runs);
        else if (r->mode == WINDOW_MAX)
            collected_tile(1, r, t, x, 0, out, from, to, runs);
        else
            collected_tile(0, r, t, x, weight, out, from, to, runs);
    }
}

int64_t window_rows(void) { return ROWS; }
