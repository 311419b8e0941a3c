// Batch norm by the batch's own statistics, and its gradient, in blocks of 16 channels.
//
// Sums are in two levels, chunks of pixels in single precision and their sums in double.
// A share is some blocks, so that numbers do not depend on how many threads there are.
#include <math.h>

#include "call.h"

enum { CHUNK = 128 };

typedef struct {
    double lanes[LANES];
} sums;

INLINE void add_to(sums *s, const vec *v) {
    UNROLLED for (int p = 0; p < PARTS; p++)
        UNROLLED for (int i = 0; i < WIDTH; i++) s->lanes[p * WIDTH + i] += (double)v[p][i];
}

// Values of a block's channels; `other` behind the last channel and where there are none.
INLINE void of_channels(const float *from, int64_t n, float other, float *to) {
    for (int64_t i = 0; i < LANES; i++) to[i] = from && i < n ? from[i] : other;
}

// Sums of x - shift and of its square over pixels.
static void moments(const float *x, int64_t pixels, const float *shift, sums *one,
                    sums *two) {
    memset(one, 0, sizeof *one);
    memset(two, 0, sizeof *two);
    vec m[PARTS];
    UNROLLED for (int p = 0; p < PARTS; p++) m[p] = load(shift + p * WIDTH);
    for (int64_t start = 0; start < pixels; start += CHUNK) {
        const int64_t end = start + CHUNK < pixels ? start + CHUNK : pixels;
        vec a[2][PARTS] = {{{0}}}, b[2][PARTS] = {{{0}}};
        for (int64_t i = start; i < end; i += 2)
            UNROLLED for (int q = 0; q < 2; q++) {
                if (i + q == end) break;
                UNROLLED for (int p = 0; p < PARTS; p++) {
                    const vec v = load(x + (i + q) * LANES + p * WIDTH) - m[p];
                    a[q][p] += v;
                    b[q][p] += v * v;
                }
            }
        UNROLLED for (int p = 0; p < PARTS; p++) {
            a[0][p] += a[1][p];
            b[0][p] += b[1][p];
        }
        add_to(one, a[0]);
        add_to(two, b[0]);
    }
}

void channel_norm(const void *record, const call *c, int64_t part, int64_t parts) {
    const channel_norm_record *r = record;
    const float *scale = at(c, r->scale), *bias = at(c, r->bias);
    const int64_t pixels = r->pixels;
    SHARE((r->channels + LANES - 1) / LANES);
    for (int64_t u = first; u < behind; u++) {
        const int64_t left = r->channels - u * LANES, some = left < LANES ? left : LANES;
        const float *x = (const float *)at(c, r->x) + u * pixels * LANES;
        float *out = (float *)at(c, r->out) + u * pixels * LANES;
        float shift[LANES] = {0}, by[LANES], plus[LANES];
        sums one, two;
        moments(x, pixels < CHUNK ? pixels : CHUNK, shift, &one, &two);
        for (int i = 0; i < LANES; i++)  // so that squares lose nothing
            shift[i] = (float)(one.lanes[i] / (double)(pixels < CHUNK ? pixels : CHUNK));
        moments(x, pixels, shift, &one, &two);
        of_channels(scale ? scale + u * LANES : 0, some, 1, by);
        of_channels(bias ? bias + u * LANES : 0, some, 0, plus);
        for (int i = 0; i < LANES; i++) {
            const double moved = one.lanes[i] / (double)pixels;
            double var = two.lanes[i] / (double)pixels - moved * moved;
            if (var < 0) var = 0;
            const float mean = (float)((double)shift[i] + moved);
            if (i < some) {
                ((float *)at(c, r->mean))[u * LANES + i] = mean;
                ((float *)at(c, r->var))[u * LANES + i] = (float)var;
            }
            shift[i] = mean;
            by[i] *= (float)(1 / sqrt(var + r->eps));
        }
        vec m[PARTS], f[PARTS], b[PARTS];
        UNROLLED for (int p = 0; p < PARTS; p++) {
            m[p] = load(shift + p * WIDTH);
            f[p] = load(by + p * WIDTH);
            b[p] = load(plus + p * WIDTH);
        }
        const vec low = all(r->has_low ? (float)r->low : -INFINITY);
        const vec high = all(r->has_low ? (float)r->high : INFINITY);
        for (int64_t i = 0; i < pixels; i++)
            UNROLLED for (int p = 0; p < PARTS; p++) {
                const int64_t k = i * LANES + p * WIDTH;
                const vec v = (load(x + k) - m[p]) * f[p] + b[p];
                store(out + k, at_most(high, at_least(low, v)));
            }
    }
}

typedef struct {
    const float *g, *x, *y;
    vec above, below;
} pull;

// The gradient at element k: 0 where y, if there is one, is at a bound or beyond it.
INLINE vec slope_at(const pull *s, int64_t k) {
    const vec g = load(s->g + k);
    if (!s->y) return g;
    const vec y = load(s->y + k);
    return choose((ivec)((y <= s->above) | (y >= s->below)), (vec){0}, g);
}

void channel_norm_gradient(const void *record, const call *c, int64_t part,
                           int64_t parts) {
    const channel_norm_gradient_record *r = record;
    const float *scale = at(c, r->scale);
    const int64_t pixels = r->pixels;
    const double all_of = (double)pixels;
    SHARE((r->channels + LANES - 1) / LANES);
    for (int64_t u = first; u < behind; u++) {
        const int64_t left = r->channels - u * LANES, some = left < LANES ? left : LANES;
        const int64_t from = u * pixels * LANES;
        const float *y = at(c, r->y);
        const pull s = {.g = (const float *)at(c, r->g) + from,
                        .x = (const float *)at(c, r->x) + from,
                        .y = y ? y + from : 0,
                        .above = all((float)r->above),
                        .below = all((float)r->below)};
        float *out = (float *)at(c, r->out) + from;
        float mean[LANES], var[LANES], by[LANES], slope[LANES], shift[LANES];
        of_channels((const float *)at(c, r->mean) + u * LANES, some, 0, mean);
        of_channels((const float *)at(c, r->var) + u * LANES, some, 1, var);
        of_channels(scale ? scale + u * LANES : 0, some, 1, by);
        sums one = {{0}}, two = {{0}};
        vec m[PARTS], f[PARTS], t[PARTS], d[PARTS];
        UNROLLED for (int p = 0; p < PARTS; p++) m[p] = load(mean + p * WIDTH);
        for (int64_t start = 0; start < pixels; start += CHUNK) {
            const int64_t end = start + CHUNK < pixels ? start + CHUNK : pixels;
            vec a[2][PARTS] = {{{0}}}, b[2][PARTS] = {{{0}}};
            for (int64_t i = start; i < end; i += 2)
                UNROLLED for (int q = 0; q < 2; q++) {
                    if (i + q == end) break;
                    UNROLLED for (int p = 0; p < PARTS; p++) {
                        const int64_t k = (i + q) * LANES + p * WIDTH;
                        const vec g = slope_at(&s, k);
                        a[q][p] += g;
                        b[q][p] += g * (load(s.x + k) - m[p]);
                    }
                }
            UNROLLED for (int p = 0; p < PARTS; p++) {
                a[0][p] += a[1][p];
                b[0][p] += b[1][p];
            }
            add_to(&one, a[0]);
            add_to(&two, b[0]);
        }
        for (int i = 0; i < LANES; i++) {
            const double rstd = 1 / sqrt((double)var[i] + r->eps);
            if (i < some) {
                if (at(c, r->dscale))
                    ((float *)at(c, r->dscale))[u * LANES + i] = (float)(two.lanes[i] * rstd);
                if (at(c, r->dbias))
                    ((float *)at(c, r->dbias))[u * LANES + i] = (float)one.lanes[i];
            }
            by[i] *= (float)rstd;
            slope[i] = (float)(two.lanes[i] * rstd * rstd / all_of);
            shift[i] = (float)(one.lanes[i] / all_of);
        }
        UNROLLED for (int p = 0; p < PARTS; p++) {
            f[p] = load(by + p * WIDTH);
            t[p] = load(slope + p * WIDTH);
            d[p] = load(shift + p * WIDTH);
        }
        for (int64_t i = 0; i < pixels; i++)
            UNROLLED for (int p = 0; p < PARTS; p++) {
                const int64_t k = i * LANES + p * WIDTH;
                const vec v = slope_at(&s, k) - d[p] - (load(s.x + k) - m[p]) * t[p];
                store(out + k, v * f[p]);
            }
    }
}
