// Gradients of layer norm, RMS norm and softmax, over rows of a matrix.
#include "call.h"
#include "functions.h"
#include "rows.h"
#include "softmax_columns.h"

enum { CHUNK = 32 };  // rows whose parts of a weight's gradient are added up at a time

// Adds v to n elements, a vector or some of one.
INLINE void add_to(float *to, vec v, int64_t n) {
    if (n == WIDTH)
        store(to, load(to) + v);
    else
        store_some(to, load_some(to, n) + v, n);
}

// A vector at a time: `some` is how many of its elements there are.
#define VECTORS(n, body)                                        \
    {                                                           \
        int64_t i = 0;                                          \
        for (; i + WIDTH <= (n); i += WIDTH) {                  \
            const int64_t some = WIDTH;                         \
            body;                                               \
        }                                                       \
        const int64_t some = (n)-i;                             \
        if (some) { body; }                                     \
    }

// out: the gradient of x, unless it is 0. dweight, dbias: what the row adds to them.
static void norm_row(const float *g, const float *x, const float *weight, float *out,
                     float *dweight, float *dbias, int64_t n, int center, float eps) {
    const float mean = center ? row_sum(x, n) / (float)n : 0;
    const float scale = 1 / sqrtf(row_squares(x, n, mean) / (float)n + eps);
    vec plain = {0}, along = {0};
    VECTORS(n, {
        const vec v = (load_up_to(x + i, some) - mean) * scale;
        vec d = load_up_to(g + i, some);
        if (dweight) add_to(dweight + i, d * v, some);
        if (dbias) add_to(dbias + i, d, some);
        if (weight) d *= load_up_to(weight + i, some);
        plain += d;
        along += d * v;
    })
    if (!out) return;
    const float shift = center ? sum_of(plain) / (float)n : 0;
    const float slope = sum_of(along) / (float)n;
    VECTORS(n, {
        const vec v = (load_up_to(x + i, some) - mean) * scale;
        vec d = load_up_to(g + i, some);
        if (weight) d *= load_up_to(weight + i, some);
        store_some(out + i, (d - shift - v * slope) * scale, some);
    })
}

// Units are chunks of rows, each with its own sums, which `reduce` adds up: so they do
// not depend on how many threads there are.
void layer_norm_gradient(const void *record, const call *c, int64_t part, int64_t parts) {
    const layer_norm_gradient_record *r = record;
    const float *weight = at(c, r->weight);
    const int64_t n = r->width;
    SHARE((r->rows + CHUNK - 1) / CHUNK);
    for (int64_t u = first; u < behind; u++) {
        const int64_t end = (u + 1) * CHUNK < r->rows ? (u + 1) * CHUNK : r->rows;
        float *sums[2] = {at(c, r->dweight), at(c, r->dbias)};
        for (int k = 0; k < 2; k++)
            if (sums[k]) memset(sums[k] += u * n, 0, 4 * (size_t)n);
        float *out = at(c, r->out);
        for (int64_t row = u * CHUNK; row < end; row++)
            norm_row((const float *)at(c, r->g) + row * n,
                     (const float *)at(c, r->x) + row * n, weight,
                     out ? out + row * n : 0, sums[0], sums[1], n, (int)r->center,
                     (float)r->eps);
    }
}

// dweight, dbias: (count, all channels), what each example adds to them.
void group_norm_gradient(const void *record, const call *c, int64_t part, int64_t parts) {
    const group_norm_gradient_record *r = record;
    const float *weight = at(c, r->weight);
    float *dweight = at(c, r->dweight), *dbias = at(c, r->dbias);
    const int64_t n = r->channels * r->inner;
    SHARE(r->count * r->groups);
    for (int64_t u = first; u < behind; u++) {
        const float *g = (const float *)at(c, r->g) + u * n;
        const float *x = (const float *)at(c, r->x) + u * n;
        float *out = (float *)at(c, r->out) + u * n;
        const float mean = row_sum(x, n) / (float)n;
        const float scale = 1 / sqrtf(row_squares(x, n, mean) / (float)n + (float)r->eps);
        float plain = 0, along = 0;
        for (int64_t k = 0; k < r->channels; k++) {
            const int64_t channel = u % r->groups * r->channels + k;
            const float by = weight ? weight[channel] : 1;
            const float *d = g + k * r->inner, *row = x + k * r->inner;
            vec to_weight = {0}, to_bias = {0};
            VECTORS(r->inner, {
                // what lies behind the row is 0 in d
                const vec v = load_up_to(d + i, some);
                to_weight += v * ((load_up_to(row + i, some) - mean) * scale);
                to_bias += v;
            })
            const float sums[2] = {sum_of(to_weight), sum_of(to_bias)};
            const int64_t place = u * r->channels + k;
            if (dweight) dweight[place] = sums[0];
            if (dbias) dbias[place] = sums[1];
            along += by * sums[0], plain += by * sums[1];
        }
        const float slope = along / (float)n, shift = plain / (float)n;
        for (int64_t k = 0; k < r->channels; k++) {
            const float by = weight ? weight[u % r->groups * r->channels + k] : 1;
            const float *d = g + k * r->inner, *row = x + k * r->inner;
            float *to = out + k * r->inner;
            VECTORS(r->inner, {
                const vec v = (load_up_to(row + i, some) - mean) * scale;
                const vec e = load_up_to(d + i, some) * by - shift - v * slope;
                store_some(to + i, e * scale, some);
            })
        }
    }
}

// y: the result of softmax or log-softmax.
void softmax_gradient(const void *record, const call *c, int64_t part, int64_t parts) {
    const softmax_gradient_record *r = record;
    const int64_t n = r->width;
    if (r->inner > 1) {
        const float *g = at(c, r->g), *y = at(c, r->y);
        float *out = at(c, r->out);
        EACH_COLUMNS(r, softmax_columns_gradient(g + place, y + place, out + place, n,
                                                 r->inner, some, (int)r->is_log))
        return;
    }
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++) {
        const float *g = (const float *)at(c, r->g) + u * n;
        const float *y = (const float *)at(c, r->y) + u * n;
        float *out = (float *)at(c, r->out) + u * n;
        vec sums = {0};
        if (r->is_log) {
            const float total = row_sum(g, n);
            VECTORS(n, store_some(out + i,
                                  load_up_to(g + i, some)
                                      - exponential(load_up_to(y + i, some)) * total,
                                  some))
            continue;
        }
        VECTORS(n, sums += load_up_to(g + i, some) * load_up_to(y + i, some))
        const float total = sum_of(sums);
        VECTORS(n, store_some(out + i,
                              (load_up_to(g + i, some) - total) * load_up_to(y + i, some),
                              some))
    }
}
