// Windows over maps in blocks of 16 channels: depthwise convolution and pooling.
//
// Tiles and taps are those of conv.c; a channel sees its own channel alone, so that a
// tile of R pixels is R times PARTS vectors and a tap is a vector of weights.
#include "activation.h"
#include "call.h"

typedef struct {
    int32_t x, weight, length;
} run;

typedef struct {
    int32_t first, count, stride, runs, n_runs, last, n_last;
} tile;

enum { ROWS = WIDTH == 16 ? 14 : 6 };

// A run is a stretch of taps that lie side by side: LANES floats each.
INLINE void weigh(const int R, const window_record *r, const float *x, const float *w,
                  const float *bias, float *out, const int32_t *from, const run *runs,
                  const run *end) {
    vec acc[ROWS][PARTS];
    UNROLLED for (int v = 0; v < PARTS; v++) {
        vec b = load(bias + v * WIDTH);
        UNROLLED for (int i = 0; i < R; i++) acc[i][v] = b;
    }
    for (; runs < end; runs++)
        for (int64_t k = 0; k < runs->length; k += LANES)
            UNROLLED for (int v = 0; v < PARTS; v++) {
                vec t = load(w + runs->weight + k + v * WIDTH);
                UNROLLED for (int i = 0; i < R; i++)
                    acc[i][v] += t * load(x + from[i] + runs->x + k + v * WIDTH);
            }
    UNROLLED for (int i = 0; i < R; i++) UNROLLED for (int v = 0; v < PARTS; v++)
        store(out + i * LANES + v * WIDTH, acc[i][v]);
    if (r->act) activate(r->act, out, 0, R, 1, 0, (float)r->low, (float)r->high);
}

INLINE void collect(const int is_max, int64_t rows, const float *x, float scale,
                    float *out, const int32_t *from, const run *runs, const run *end) {
    for (int64_t i = 0; i < rows; i++)
        UNROLLED for (int v = 0; v < PARTS; v++) {
            vec acc = all(is_max ? -__builtin_inff() : 0);
            for (const run *t = runs; t < end; t++)
                for (int64_t k = 0; k < t->length; k += LANES) {
                    vec y = load(x + from[i] + t->x + k + v * WIDTH);
                    acc = is_max ? greater(acc, y) : acc + y;
                }
            store(out + i * LANES + v * WIDTH, is_max ? acc : acc * scale);
        }
}

#define WEIGH(R)                                                              \
    case R:                                                                   \
        weigh(R, r, x, w, bias, y, from + t->first, runs + t->runs,           \
              runs + t->runs + t->n_runs);                                    \
        break;

static void weighed_tile(const window_record *r, const tile *t, const float *x,
                         const float *w, const float *bias, float *out,
                         const int32_t *from, const int32_t *to, const run *runs) {
    float aside[ROWS * LANES];
    const int is_row = to[t->first + t->count - 1] - to[t->first] == (t->count - 1) * LANES;
    float *y = is_row ? out + to[t->first] : aside;
    switch (t->count) {
        WEIGH(1) WEIGH(2) WEIGH(3) WEIGH(4) WEIGH(5) WEIGH(6)
#if WIDTH == 16
        WEIGH(7) WEIGH(8) WEIGH(9) WEIGH(10) WEIGH(11) WEIGH(12) WEIGH(13) WEIGH(14)
#endif
    }
    for (int64_t i = 0; !is_row && i < t->count; i++)
        memcpy(out + to[t->first + i], aside + i * LANES, 4 * LANES);
}

static void collected_tile(const window_record *r, const tile *t, const float *x,
                           float *out, const int32_t *from, const int32_t *to,
                           const run *runs) {
    const run *first = runs + t->runs, *end = first + t->n_runs;
    float aside[ROWS * LANES];
    if (r->mode == WINDOW_MAX)
        collect(1, t->count, x, 1, aside, from + t->first, first, end);
    else
        collect(0, t->count, x, (float)r->scale, aside, from + t->first, first, end);
    for (int64_t i = 0; i < t->count; i++)
        memcpy(out + to[t->first + i], aside + i * LANES, 4 * LANES);
}

void window(const void *record, const call *c, int64_t part, int64_t parts) {
    const window_record *r = record;
    const tile *tiles = at(c, r->tiles);
    const int32_t *from = at(c, r->from), *to = at(c, r->to);
    SHARE(r->blocks * r->n_tiles);
    for (int64_t u = first; u < behind; u++) {
        const int64_t b = u / r->n_tiles;
        const tile *t = tiles + u % r->n_tiles;
        const float *x = (const float *)at(c, r->x) + b * r->x_step;
        float *out = (float *)at(c, r->out) + b * r->out_step;
        if (r->mode == WINDOW_WEIGHTS)
            weighed_tile(r, t, x, (const float *)at(c, r->weight) + b * r->weight_step,
                         (const float *)at(c, r->bias) + b * LANES, out, from, to,
                         at(c, r->runs));
        else
            collected_tile(r, t, x, out, from, to, at(c, r->runs));
    }
}
