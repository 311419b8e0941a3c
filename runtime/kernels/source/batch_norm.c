// Batch norm by the batch's own statistics, and its gradient: x (count, channels, inner).
//
// Sums are in two levels, blocks in single precision and their sums in double. A share is
// some channels, so that numbers do not depend on how many threads there are. Where maps
// have one place, neighbouring channels are the lanes of vectors, and a share is whole
// groups of vectors: one and several of them may not round alike.
#include <math.h>

#include "call.h"

enum { ROWS = 64, BLOCK = ROWS * WIDTH, COLUMNS = 4, GROUP = COLUMNS * WIDTH };

// Sums of a[i] - mean, or of (a[i] - mean) * (b[i] - other), over a row of n.
INLINE double summed(const int is_product, const float *a, const float *b, int64_t n,
                     float mean, float other) {
    double total = 0;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t end = start + BLOCK < n ? start + BLOCK : n;
        vec s[4] = {{0}};
        int64_t i = start;
        for (; i + 4 * WIDTH <= end; i += 4 * WIDTH)
            UNROLLED for (int u = 0; u < 4; u++) {
                vec v = load(a + i + u * WIDTH) - mean;
                s[u] += is_product ? v * (load(b + i + u * WIDTH) - other) : v;
            }
        for (; i + WIDTH <= end; i += WIDTH) {
            vec v = load(a + i) - mean;
            s[0] += is_product ? v * (load(b + i) - other) : v;
        }
        total += (double)sum_of((s[0] + s[1]) + (s[2] + s[3]));
        for (; i < end; i++)
            total += is_product ? (double)(a[i] - mean) * (double)(b[i] - other)
                                : (double)(a[i] - mean);
    }
    return total;
}

static void planes(const batch_norm_record *r, const call *c, int64_t first,
                   int64_t behind) {
    const float *scale = at(c, r->scale), *bias = at(c, r->bias);
    float *means = at(c, r->mean), *vars = at(c, r->var);
    const int64_t n = r->inner, step = r->channels * n;
    const double all_of = (double)(r->count * n);
    for (int64_t k = first; k < behind; k++) {
        const float *x = (const float *)at(c, r->x) + k * n;
        float *out = (float *)at(c, r->out) + k * n;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < r->count; i++)
            sum += summed(0, x + i * step, 0, n, 0, 0);
        const float mean = (float)(sum / all_of);
        for (int64_t i = 0; i < r->count; i++)
            squares += summed(1, x + i * step, x + i * step, n, mean, mean);
        const double var = squares / all_of;
        const float by = (float)(1 / sqrt(var + r->eps)) * (scale ? scale[k] : 1);
        const float shift = bias ? bias[k] : 0;
        means[k] = mean;
        vars[k] = (float)var;
        for (int64_t i = 0; i < r->count; i++) {
            const float *from = x + i * step;
            float *to = out + i * step;
            int64_t j = 0;
            for (; j + WIDTH <= n; j += WIDTH)
                store(to + j, (load(from + j) - mean) * by + shift);
            for (; j < n; j++) to[j] = (from[j] - mean) * by + shift;
        }
    }
}

static void plane_gradients(const batch_norm_gradient_record *r, const call *c,
                            int64_t first, int64_t behind) {
    const float *means = at(c, r->mean), *vars = at(c, r->var);
    const float *scale = at(c, r->scale);
    float *dscale = at(c, r->dscale), *dbias = at(c, r->dbias);
    const int64_t n = r->inner, step = r->channels * n;
    const double all_of = (double)(r->count * n);
    for (int64_t k = first; k < behind; k++) {
        const float *g = (const float *)at(c, r->g) + k * n;
        const float *x = (const float *)at(c, r->x) + k * n;
        float *out = (float *)at(c, r->out) + k * n;
        const float mean = means[k];
        double sum = 0, products = 0;
        for (int64_t i = 0; i < r->count; i++) {
            sum += summed(0, g + i * step, 0, n, 0, 0);
            products += summed(1, g + i * step, x + i * step, n, 0, mean);
        }
        const double rstd = 1 / sqrt((double)vars[k] + r->eps);
        dscale[k] = (float)(products * rstd);
        dbias[k] = (float)sum;
        const float by = (float)rstd * (scale ? scale[k] : 1);
        const float slope = (float)(products * rstd * rstd / all_of);
        const float shift = (float)(sum / all_of);
        for (int64_t i = 0; i < r->count; i++) {
            const float *gs = g + i * step, *xs = x + i * step;
            float *to = out + i * step;
            int64_t j = 0;
            for (; j + WIDTH <= n; j += WIDTH)
                store(to + j,
                      (load(gs + j) - shift - (load(xs + j) - mean) * slope) * by);
            for (; j < n; j++) to[j] = (gs[j] - shift - (xs[j] - mean) * slope) * by;
        }
    }
}

// Sums of a - mean, or of (a - mean) * (b - other), down vectors of channels whose rows
// are `step` apart.
INLINE void down(const int is_product, const int columns, const float *a, const float *b,
                 int64_t count, int64_t step, const float *mean, const float *other,
                 double *totals) {
    for (int k = 0; k < columns * WIDTH; k++) totals[k] = 0;
    for (int64_t start = 0; start < count; start += ROWS) {
        const int64_t end = start + ROWS < count ? start + ROWS : count;
        vec s[COLUMNS] = {{0}};
        for (int64_t i = start; i < end; i++)
            UNROLLED for (int u = 0; u < columns; u++) {
                const int64_t at_row = i * step + u * WIDTH;
                vec v = load(a + at_row) - load(mean + u * WIDTH);
                if (is_product) v *= load(b + at_row) - load(other + u * WIDTH);
                s[u] += v;
            }
        UNROLLED for (int u = 0; u < columns; u++)
            for (int k = 0; k < WIDTH; k++) totals[u * WIDTH + k] += (double)s[u][k];
    }
}

// Of vectors of channels from k on.
INLINE void column_norms(const int columns, const batch_norm_record *r, const call *c,
                         int64_t k) {
    static const float zeros[GROUP];
    const float *scale = at(c, r->scale), *bias = at(c, r->bias);
    const float *x = (const float *)at(c, r->x) + k;
    float *out = (float *)at(c, r->out) + k;
    float *means = (float *)at(c, r->mean) + k, *vars = (float *)at(c, r->var) + k;
    const double all_of = (double)r->count;
    double sums[GROUP];
    float by[GROUP], shift[GROUP];
    down(0, columns, x, 0, r->count, r->channels, zeros, zeros, sums);
    for (int i = 0; i < columns * WIDTH; i++) means[i] = (float)(sums[i] / all_of);
    down(1, columns, x, x, r->count, r->channels, means, means, sums);
    for (int i = 0; i < columns * WIDTH; i++) {
        const double var = sums[i] / all_of;
        by[i] = (float)(1 / sqrt(var + r->eps)) * (scale ? scale[k + i] : 1);
        shift[i] = bias ? bias[k + i] : 0;
        vars[i] = (float)var;
    }
    for (int64_t row = 0; row < r->count; row++, x += r->channels, out += r->channels)
        UNROLLED for (int u = 0; u < columns * WIDTH; u += WIDTH)
            store(out + u, (load(x + u) - load(means + u)) * load(by + u)
                               + load(shift + u));
}

INLINE void column_gradients(const int columns, const batch_norm_gradient_record *r,
                             const call *c, int64_t k) {
    static const float zeros[GROUP];
    const float *scale = at(c, r->scale);
    const float *g = (const float *)at(c, r->g) + k, *x = (const float *)at(c, r->x) + k;
    const float *means = (const float *)at(c, r->mean) + k;
    const float *vars = (const float *)at(c, r->var) + k;
    float *out = (float *)at(c, r->out) + k;
    float *dscale = (float *)at(c, r->dscale) + k, *dbias = (float *)at(c, r->dbias) + k;
    const double all_of = (double)r->count;
    double sums[GROUP], products[GROUP];
    float by[GROUP], slope[GROUP], shift[GROUP];
    down(0, columns, g, 0, r->count, r->channels, zeros, zeros, sums);
    down(1, columns, g, x, r->count, r->channels, zeros, means, products);
    for (int i = 0; i < columns * WIDTH; i++) {
        const double rstd = 1 / sqrt((double)vars[i] + r->eps);
        dscale[i] = (float)(products[i] * rstd);
        dbias[i] = (float)sums[i];
        by[i] = (float)rstd * (scale ? scale[k + i] : 1);
        slope[i] = (float)(products[i] * rstd * rstd / all_of);
        shift[i] = (float)(sums[i] / all_of);
    }
    for (int64_t row = 0; row < r->count; row++) {
        UNROLLED for (int u = 0; u < columns * WIDTH; u += WIDTH)
            store(out + u, (load(g + u) - load(shift + u)
                            - (load(x + u) - load(means + u)) * load(slope + u))
                               * load(by + u));
        g += r->channels, x += r->channels, out += r->channels;
    }
}

void batch_norm(const void *record, const call *c, int64_t part, int64_t parts) {
    const batch_norm_record *r = record;
    if (r->inner > 1) {
        SHARE(r->channels);
        planes(r, c, first, behind);
        return;
    }
    SHARE((r->channels + GROUP - 1) / GROUP);
    int64_t k = first * GROUP;
    const int64_t end = behind * GROUP < r->channels ? behind * GROUP : r->channels;
    for (; k + GROUP <= end; k += GROUP) column_norms(COLUMNS, r, c, k);
    for (; k + WIDTH <= end; k += WIDTH) column_norms(1, r, c, k);
    if (k < end) planes(r, c, k, end);
}

void batch_norm_gradient(const void *record, const call *c, int64_t part,
                         int64_t parts) {
    const batch_norm_gradient_record *r = record;
    if (r->inner > 1) {
        SHARE(r->channels);
        plane_gradients(r, c, first, behind);
        return;
    }
    SHARE((r->channels + GROUP - 1) / GROUP);
    int64_t k = first * GROUP;
    const int64_t end = behind * GROUP < r->channels ? behind * GROUP : r->channels;
    for (; k + GROUP <= end; k += GROUP) column_gradients(COLUMNS, r, c, k);
    for (; k + WIDTH <= end; k += WIDTH) column_gradients(1, r, c, k);
    if (k < end) plane_gradients(r, c, k, end);
}

// Rows of channels: neighbouring ones are the lanes of vectors.
static void affine_rows(const channel_affine_record *r, const call *c, int64_t first,
                        int64_t behind) {
    const float *factor = at(c, r->factor), *offset = at(c, r->offset);
    const int64_t n = r->channels;
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * n;
        float *out = (float *)at(c, r->out) + u * n;
        int64_t j = 0;
        for (; j + WIDTH <= n; j += WIDTH)
            store(out + j, load(x + j) * load(factor + j) + load(offset + j));
        for (; j < n; j++) out[j] = x[j] * factor[j] + offset[j];
    }
}

// x times a factor plus an offset, both of its channel.
void channel_affine(const void *record, const call *c, int64_t part, int64_t parts) {
    const channel_affine_record *r = record;
    const float *factor = at(c, r->factor), *offset = at(c, r->offset);
    const int64_t n = r->inner;
    if (n == 1) {
        SHARE(r->count);
        affine_rows(r, c, first, behind);
        return;
    }
    SHARE(r->count * r->channels);
    for (int64_t u = first; u < behind; u++) {
        const float by = factor[u % r->channels], shift = offset[u % r->channels];
        const float *x = (const float *)at(c, r->x) + u * n;
        float *out = (float *)at(c, r->out) + u * n;
        int64_t j = 0;
        for (; j + WIDTH <= n; j += WIDTH) store(out + j, load(x + j) * by + shift);
        for (; j < n; j++) out[j] = x[j] * by + shift;
    }
}
