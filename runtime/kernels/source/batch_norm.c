// Batch norm by the batch's own statistics, and its gradient: x (count, channels, inner).
//
// Sums are in two levels, blocks in single precision and their sums in double. A share is
// some channels, so that numbers do not depend on how many threads there are.
#include <math.h>

#include "call.h"

enum { BLOCK = 64 * WIDTH };

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

void batch_norm(const void *record, const call *c, int64_t part, int64_t parts) {
    const batch_norm_record *r = record;
    const float *scale = at(c, r->scale), *bias = at(c, r->bias);
    float *means = at(c, r->mean), *vars = at(c, r->var);
    const int64_t n = r->inner, step = r->channels * n;
    const double all_of = (double)(r->count * n);
    SHARE(r->channels);
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

void batch_norm_gradient(const void *record, const call *c, int64_t part,
                         int64_t parts) {
    const batch_norm_gradient_record *r = record;
    const float *means = at(c, r->mean), *vars = at(c, r->var);
    const float *scale = at(c, r->scale);
    float *dscale = at(c, r->dscale), *dbias = at(c, r->dbias);
    const int64_t n = r->inner, step = r->channels * n;
    const double all_of = (double)(r->count * n);
    SHARE(r->channels);
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
