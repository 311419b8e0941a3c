// Convolutions and products of a few outputs: vectors go along the input's channels.
//
// A kernel whose vectors are blocks of 16 outputs would multiply mostly zeros. Here a
// vector is part of a run of the input, see conv.c, and is added up at the end.
// Weights are (output, block of inputs, tap, input).
#include "activation.h"
#include "call.h"
#include "tiles.h"
#include "turn.h"

enum {
    MOST_OUTS = 4,    // sums of a pixel that are in registers together
    MOST_PIXELS = 8,  // whose sums are
    FEW_PIXELS = 2    // whose sums are, one by one
};

typedef struct {
    const float *x, *weight;  // of the first output
    const int32_t *from;
    const run *runs;
    const tile *t;
    const narrow_record *record;
} piece;

// Vectors that add up to the sums of R pixels from the `first` on, beyond the tile of
// its last pixel.
INLINE void multiply(const int R, const int O, const piece *p, int64_t first,
                     vec (*sums)[LANES + MOST_PIXELS]) {
    const narrow_record *r = p->record;
    vec acc[MOST_PIXELS][MOST_OUTS];
    int64_t from[MOST_PIXELS];
    UNROLLED for (int i = 0; i < R; i++) {
        from[i] = p->from[first + i < p->t->count ? first + i : p->t->count - 1];
        UNROLLED for (int o = 0; o < O; o++) acc[i][o] = (vec){0};
    }
    const float *x = p->x, *weight = p->weight;
    for (int64_t block = 0; block < r->blocks; block++) {
        const int is_last = block == r->blocks - 1;
        const run *runs = p->runs + (is_last ? p->t->last : p->t->runs);
        const run *end = runs + (is_last ? p->t->n_last : p->t->n_runs);
        for (; runs < end; runs++) {
            const float *at = x + runs->x, *w = weight + runs->weight;
            int64_t k = 0;
            for (; k + WIDTH <= runs->length; k += WIDTH) {
                vec ws[MOST_OUTS];
                UNROLLED for (int o = 0; o < O; o++) ws[o] = load(w + o * r->row + k);
                UNROLLED for (int i = 0; i < R; i++) {
                    const vec v = load(at + from[i] + k);
                    UNROLLED for (int o = 0; o < O; o++) acc[i][o] = v * ws[o] + acc[i][o];
                }
            }
            const int64_t rest = runs->length - k;
            if (!rest) continue;
            UNROLLED for (int i = 0; i < R; i++) {
                const vec v = load_some(at + from[i] + k, rest);
                UNROLLED for (int o = 0; o < O; o++)
                    acc[i][o] = v * load_some(w + o * r->row + k, rest) + acc[i][o];
            }
        }
        x += r->x_step;
        weight += r->weight_step;
    }
    UNROLLED for (int i = 0; i < R; i++)
        UNROLLED for (int o = 0; o < O; o++) sums[o][first + i] = acc[i][o];
}

// As many pixels at a time as accumulators fit the registers: 32, or 16. Fewer of a
// small tile, where most of those were its last pixel.
#define SUMS(O, R)                                                           \
    static void sums_of_##O(const piece *p, float (*y)[LANES]) {             \
        const int64_t count = p->t->count;                                   \
        vec sums[O][LANES + MOST_PIXELS];                                    \
        if (count < LANES) memset(sums, 0, sizeof sums);                     \
        if (count <= FEW_PIXELS)                                             \
            for (int64_t i = 0; i < count; i++) multiply(1, O, p, i, sums);  \
        else                                                                 \
            for (int64_t i = 0; i < count; i += R) multiply(R, O, p, i, sums); \
        for (int64_t i = 0; i < count; i += WIDTH)                           \
            for (int o = 0; o < O; o++)                                      \
                store(y[o] + i, sums_of_rows(sums[o] + i));                  \
    }
#if WIDTH == 8
SUMS(1, 8) SUMS(2, 4) SUMS(3, 4) SUMS(4, 2)
#else
SUMS(1, 8) SUMS(2, 8) SUMS(3, 8) SUMS(4, 6)
#endif

static void (*const KERNELS[])(const piece *, float (*)[LANES]) = {
    0, sums_of_1, sums_of_2, sums_of_3, sums_of_4};

// Bias, residual and activation; then to the pixels' places.
static void leave(const narrow_record *r, const call *c, const tile *t, int64_t channel,
                  float *y) {
    const int32_t *to = (const int32_t *)at(c, r->to) + t->first;
    const float bias = ((const float *)at(c, r->bias))[channel];
    const float *residual = at(c, r->residual);
    float *out = (float *)at(c, r->out) + channel * r->out_step;
    for (int64_t i = 0; i < t->count; i++) {
        y[i] += bias;
        if (residual) y[i] += residual[channel * r->out_step + to[i]];
    }
    for (int64_t i = 0; i < t->count; i += WIDTH)
        store(y + i, activated(load(y + i), r->act, (float)r->low, (float)r->high));
    for (int64_t i = 0; i < t->count; i++) out[to[i]] = y[i];
}

// A unit is a tile of up to LANES pixels.
void narrow(const void *record, const call *c, int64_t part, int64_t parts) {
    const narrow_record *r = record;
    SHARE(r->n_tiles);
    for (int64_t u = first; u < behind; u++) {
        const tile *t = (const tile *)at(c, r->tiles) + u;
        piece p = {
            .x = at(c, r->x),
            .from = (const int32_t *)at(c, r->from) + t->first,
            .runs = at(c, r->runs),
            .t = t,
            .record = r,
        };
        for (int64_t o = 0; o < r->outs; o += MOST_OUTS) {
            ALIGNED float y[MOST_OUTS][LANES] = {{0}};
            const int64_t some = r->outs - o < MOST_OUTS ? r->outs - o : MOST_OUTS;
            p.weight = (const float *)at(c, r->weight) + o * r->row;
            KERNELS[some](&p, y);
            for (int64_t j = 0; j < some; j++) leave(r, c, t, o + j, y[j]);
        }
    }
}
