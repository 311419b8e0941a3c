// Depthwise convolutions of plain maps, (N, C, *S), and their gradients, plane by plane.
//
// A plane is copied with zeros around it and its columns apart by the phase of the last
// axis' stride, so that every tap of a row of places is a run of floats.
#include "call.h"

enum { ROWS = 4, TAPS = 9, PATIENCE = 256 };

typedef struct {
    int64_t sizes[3], places[3], step[3], low[3], wide[3], row, n_taps;
    const int32_t *offsets;
} grid;

#define GRID_OF(r, taps)                                                            \
    {                                                                               \
        .sizes = {(r)->size0, (r)->size1, (r)->size2},                              \
        .places = {(r)->place0, (r)->place1, (r)->place2},                          \
        .step = {(r)->step0, (r)->step1, (r)->step2},                               \
        .low = {(r)->low0, (r)->low1, (r)->low2},                                   \
        .wide = {(r)->wide0, (r)->wide1, (r)->wide2}, .row = (r)->row,              \
        .n_taps = (r)->n_taps, .offsets = (taps)                                    \
    }

// Where tap t of the first place reads in the copy.
static int64_t tap_place(const grid *g, int64_t t) {
    const int32_t *o = g->offsets + 3 * t;
    const int64_t column = o[2] - g->low[2];
    return ((o[0] - g->low[0]) * g->wide[1] + o[1] - g->low[1]) * g->row
           + column % g->step[2] * g->wide[2] + column / g->step[2];
}

static int64_t row_place(const grid *g, int64_t row) {
    return (row / g->places[1] * g->step[0] * g->wide[1]
            + row % g->places[1] * g->step[1]) * g->row;
}

// n numbers that are `step` apart, side by side.
static void every(const float *from, int64_t step, int64_t n, float *to) {
    if (step == 2)  // a constant, so that compilers turn it in registers
        for (int64_t i = 0; i < n; i++) to[i] = from[2 * i];
    else
        for (int64_t i = 0; i < n; i++) to[i] = from[i * step];
}

// The part of the plane within the copy; zeros are there already.
static void copy_plane(const grid *g, const float *x, float *to) {
    const int64_t step = g->step[2], end = g->low[2] + g->row;
    const int64_t first = g->low[2] > 0 ? g->low[2] : 0;
    const int64_t behind = g->sizes[2] < end ? g->sizes[2] : end;
    for (int64_t a = 0; a < g->sizes[0]; a++)
        for (int64_t b = 0; b < g->sizes[1]; b++) {
            const int64_t i = a - g->low[0], j = b - g->low[1];
            if (i < 0 || j < 0 || i >= g->wide[0] || j >= g->wide[1]) continue;
            const float *from = x + (a * g->sizes[1] + b) * g->sizes[2];
            float *row = to + (i * g->wide[1] + j) * g->row;
            if (step == 1) {
                if (first < behind)
                    memcpy(row + first - g->low[2], from + first, 4 * (behind - first));
                continue;
            }
            for (int64_t phase = 0; phase < step; phase++) {
                const int64_t by = ((first - g->low[2] - phase) % step + step) % step;
                const int64_t c = first + (by ? step - by : 0);
                if (c < behind)
                    every(from + c, step, (behind - c + step - 1) / step,
                          row + phase * g->wide[2] + (c - g->low[2]) / step);
            }
        }
}

INLINE void weigh(const int R, const float *const *x, const float *w, const int64_t *taps,
                  int64_t n_taps, float shift, vec *sums) {
    UNROLLED for (int i = 0; i < R; i++) sums[i] = all(shift);
    for (int64_t t = 0; t < n_taps; t++) {
        const vec s = all(w[t]);
        UNROLLED for (int i = 0; i < R; i++) sums[i] += s * load(x[i] + taps[t]);
    }
}

static void put(float *to, vec v, int64_t some, int64_t apart) {
    if (apart == 1) {
        if (some == WIDTH)
            store(to, v);
        else
            store_some(to, v, some);
        return;
    }
    for (int64_t i = 0; i < some; i++) to[i * apart] = v[i];
}

static void convolve(const depthwise_record *r, const grid *g, const float *x,
                     const float *w, const int64_t *taps, float shift, float *out) {
    const int64_t rows = g->places[0] * g->places[1], n = g->places[2];
    for (int64_t q = 0; q < rows; q += ROWS) {
        const int64_t some_rows = rows - q < ROWS ? rows - q : ROWS;
        for (int64_t j = 0; j < n; j += WIDTH) {
            const float *from[ROWS];
            vec sums[ROWS];
            for (int64_t i = 0; i < ROWS; i++)
                from[i] = x + row_place(g, i < some_rows ? q + i : q) + j;
            if (some_rows == 1)
                weigh(1, from, w, taps, g->n_taps, shift, sums);
            else
                weigh(ROWS, from, w, taps, g->n_taps, shift, sums);
            for (int64_t i = 0; i < some_rows; i++)
                put(out + (q + i) / g->places[1] * r->to0 + (q + i) % g->places[1] * r->to1
                        + j * r->to2,
                    sums[i], n - j < WIDTH ? n - j : WIDTH, r->to2);
        }
    }
}

// Shares are planes of the result. `multiplier` of them have one plane of x.
void depthwise(const void *record, const call *c, int64_t part, int64_t parts) {
    const depthwise_record *r = record;
    const grid g = GRID_OF(r, at(c, r->taps));
    const int32_t *numbers = at(c, r->numbers);
    const float *bias = at(c, r->bias);
    const int64_t plane = g.wide[0] * g.wide[1] * g.row;
    const int64_t of_plane = g.sizes[0] * g.sizes[1] * g.sizes[2];
    int64_t *taps = (int64_t *)((char *)at(c, r->space) + part * r->room);
    float *w = (float *)(taps + g.n_taps), *x = w + g.n_taps;
    for (int64_t t = 0; t < g.n_taps; t++) taps[t] = tap_place(&g, t);
    memset(x, 0, sizeof(float) * plane);
    SHARE(r->planes);
    for (int64_t u = first; u < behind; u++) {
        const int64_t channel = u % r->channels;
        const float *weight = (const float *)at(c, r->weight) + channel * r->all_taps;
        for (int64_t t = 0; t < g.n_taps; t++) w[t] = weight[numbers[t]];
        if (u == first || u % r->multiplier == 0)
            copy_plane(&g, (const float *)at(c, r->x) + u / r->multiplier * of_plane, x);
        convolve(r, &g, x, w, taps, bias ? bias[channel] : 0,
                 (float *)at(c, r->out) + u * r->out_plane + r->out_start);
    }
}

// Products of g with what TAPS taps read, added to `sums`, for one row of places.
INLINE void add_products(const float *slope, const float *x, const int64_t *taps, int64_t n,
                         vec *sums) {
    vec acc[TAPS];
    UNROLLED for (int t = 0; t < TAPS; t++) acc[t] = sums[t];
    int64_t j = 0;
    for (; j + WIDTH <= n; j += WIDTH) {
        const vec s = load(slope + j);
        UNROLLED for (int t = 0; t < TAPS; t++) acc[t] += s * load(x + taps[t] + j);
    }
    if (j < n) {
        const vec s = load_some(slope + j, n - j);
        ivec is_in;
        UNROLLED for (int l = 0; l < WIDTH; l++) is_in[l] = l < n - j ? -1 : 0;
        UNROLLED for (int t = 0; t < TAPS; t++)
            acc[t] += s * (vec)(is_in & (ivec)load(x + taps[t] + j));
    }
    UNROLLED for (int t = 0; t < TAPS; t++) sums[t] = acc[t];
}

static void flush(vec *sums, double *totals) {
    for (int64_t t = 0; t < TAPS; t++) {
        totals[t] += (double)sum_of(sums[t]);
        sums[t] = (vec){0};
    }
}

// Shares are channels of the gradient, each summed over all images: in single precision
// over a few thousand places, those sums in double.
void depthwise_weight(const void *record, const call *c, int64_t part, int64_t parts) {
    const depthwise_weight_record *r = record;
    const grid g = GRID_OF(r, at(c, r->taps));
    const int64_t plane = g.wide[0] * g.wide[1] * g.row, n = g.places[2];
    const int64_t of_plane = g.sizes[0] * g.sizes[1] * g.sizes[2];
    const int64_t rows = g.places[0] * g.places[1], inner = (n + WIDTH - 1) / WIDTH;
    const int64_t blocks = (g.n_taps + TAPS - 1) / TAPS;
    double *totals = (double *)((char *)at(c, r->space) + part * r->room);
    int64_t *taps = (int64_t *)(totals + blocks * TAPS);
    float *x = (float *)(taps + blocks * TAPS);
    for (int64_t t = 0; t < blocks * TAPS; t++)
        taps[t] = tap_place(&g, t < g.n_taps ? t : 0);
    memset(x, 0, sizeof(float) * plane);
    SHARE(r->channels);
    for (int64_t u = first; u < behind; u++) {
        for (int64_t t = 0; t < blocks * TAPS; t++) totals[t] = 0;
        for (int64_t i = 0; i < r->batch; i++) {
            const int64_t k = i * r->channels + u;
            const float *slope = (const float *)at(c, r->g) + k * rows * n;
            copy_plane(&g, (const float *)at(c, r->x) + k / r->multiplier * of_plane, x);
            for (int64_t b = 0; b < blocks; b++) {
                vec sums[TAPS] = {{0}};
                int64_t seen = 0;
                for (int64_t q = 0; q < rows; q++) {
                    add_products(slope + q * n, x + row_place(&g, q), taps + b * TAPS, n,
                                 sums);
                    if ((seen += inner) < PATIENCE) continue;
                    flush(sums, totals + b * TAPS);
                    seen = 0;
                }
                flush(sums, totals + b * TAPS);
            }
        }
        float *out = (float *)at(c, r->out) + u * g.n_taps;
        for (int64_t t = 0; t < g.n_taps; t++) out[t] = (float)totals[t];
    }
}
