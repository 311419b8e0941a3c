// Over rows of a matrix: layer and RMS norm; and softmax and reductions of an axis.
#include <math.h>

#include "call.h"
#include "functions.h"
#include "softmax.h"
#include "softmax_columns.h"

enum { ADJACENT = 4 };  // vectors of columns at a time: as much of a row as is fetched

// scale * x + shift for each element, with weight and bias where there are some.
static void moved(const float *x, float *y, int64_t n, float mean, float scale,
                  const float *weight, const float *bias) {
    OVER(n,
         vec v = (load(x + i) - mean) * scale;
         if (weight) v *= load(weight + i);
         if (bias) v += load(bias + i);
         store(y + i, v),
         for (int64_t k = i; k < n; k++) {
             float v = (x[k] - mean) * scale;
             if (weight) v *= weight[k];
             y[k] = bias ? v + bias[k] : v;
         })
}

void layer_norm(const void *record, const call *c, int64_t part, int64_t parts) {
    const layer_norm_record *r = record;
    const float *weight = at(c, r->weight), *bias = at(c, r->bias);
    const int64_t n = r->width;
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * n;
        const float mean = r->center ? row_sum(x, n) / (float)n : 0;
        const float var = row_squares(x, n, mean) / (float)n;
        moved(x, (float *)at(c, r->out) + u * n, n, mean,
              1 / sqrtf(var + (float)r->eps), weight, bias);
    }
}

// A group is some channels of an example, `inner` elements each.
void group_norm(const void *record, const call *c, int64_t part, int64_t parts) {
    const group_norm_record *r = record;
    const float *weight = at(c, r->weight), *bias = at(c, r->bias);
    const int64_t n = r->channels * r->inner;
    SHARE(r->count * r->groups);
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * n;
        float *out = (float *)at(c, r->out) + u * n;
        const float mean = row_sum(x, n) / (float)n;
        const float scale = 1 / sqrtf(row_squares(x, n, mean) / (float)n + (float)r->eps);
        const int64_t channel = u % r->groups * r->channels;
        for (int64_t k = 0; k < r->channels; k++) {
            const float by = weight ? weight[channel + k] : 1;
            const float shift = bias ? bias[channel + k] : 0;
            const float *row = x + k * r->inner;
            OVER(r->inner,
                 store(out + k * r->inner + i, (load(row + i) - mean) * scale * by + shift),
                 for (int64_t j = i; j < r->inner; j++)
                     out[k * r->inner + j] = (row[j] - mean) * scale * by + shift)
        }
    }
}

// kept: the greatest element and the inverse of the sum; two zeros for an empty row.
void softmax_row(const float *x, float *y, int64_t n, int zero_if_empty, float *kept) {
    const float most = row_greatest(x, n);
    if (zero_if_empty && most == -INFINITY) {
        memset(y, 0, 4 * (size_t)n);
        if (kept) kept[0] = kept[1] = 0;
        return;
    }
    const float share = 1 / powers(x, y, n, most);
    times(y, n, share);
    if (kept) kept[0] = most, kept[1] = share;
}

static void log_softmax_row(const float *x, float *y, int64_t n) {
    const float most = row_greatest(x, n), log_sum = logf(powers(x, y, n, most));
    OVER(n, store(y + i, load(x + i) - most - log_sum),
         for (int64_t k = i; k < n; k++) y[k] = x[k] - most - log_sum)
}

void softmax(const void *record, const call *c, int64_t part, int64_t parts) {
    const softmax_record *r = record;
    const int zero_if_empty = (int)r->zero_if_empty, is_log = (int)r->is_log;
    if (r->inner > 1) {
        const float *x = at(c, r->x);
        float *y = at(c, r->out);
        EACH_COLUMNS(r, softmax_columns(x + place, y + place, r->width, r->inner, some,
                                        zero_if_empty, is_log))
        return;
    }
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * r->width;
        float *out = (float *)at(c, r->out) + u * r->width;
        if (is_log)
            log_softmax_row(x, out, r->width);
        else
            softmax_row(x, out, r->width, zero_if_empty, 0);
    }
}

// The sums of n vectors, `step` elements apart, for V adjacent ones. Sums of 16 are summed
// by 16 and so on, so that rounding does not grow with n.
INLINE void column_sums(const int V, const float *x, int64_t n, int64_t step, int64_t some,
                        vec *total) {
    enum { TOGETHER = 16, LEVELS = 8 };
    vec sums[LEVELS][ADJACENT] = {{{0}}};
    for (int64_t start = 0, parts = 1; start < n; start += TOGETHER, parts++) {
        const int64_t end = start + TOGETHER < n ? start + TOGETHER : n;
        vec part[ADJACENT] = {{0}};
        for (int64_t k = start; k < end; k++)
            UNROLLED for (int v = 0; v < V; v++)
                part[v] += load_up_to(x + k * step + v * WIDTH, some);
        UNROLLED for (int v = 0; v < V; v++) sums[0][v] += part[v];
        int64_t full = parts;
        for (int level = 1; level < LEVELS && full % TOGETHER == 0; level++) {
            UNROLLED for (int v = 0; v < V; v++)
                sums[level][v] += sums[level - 1][v], sums[level - 1][v] = (vec){0};
            full /= TOGETHER;
        }
    }
    UNROLLED for (int v = 0; v < V; v++) {
        total[v] = sums[0][v];
        for (int level = 1; level < LEVELS; level++) total[v] += sums[level][v];
    }
}

INLINE void columns_greatest(const int V, const float *x, int64_t n, int64_t step,
                             int64_t some, vec *most) {
    UNROLLED for (int v = 0; v < V; v++) most[v] = all(-INFINITY);
    for (int64_t k = 0; k < n; k++)
        UNROLLED for (int v = 0; v < V; v++)
            most[v] = greater(most[v], load_up_to(x + k * step + v * WIDTH, some));
}

// V vectors of columns of x (n, inner); of one, `some` are there.
INLINE void some_columns(const int V, const reduce_record *r, const float *x, int64_t some,
                         float *out) {
    vec made[ADJACENT];
    if (r->mode == REDUCE_MAX)
        columns_greatest(V, x, r->width, r->inner, some, made);
    else
        column_sums(V, x, r->width, r->inner, some, made);
    const float scale = r->mode == REDUCE_MAX ? 1 : (float)r->scale;
    UNROLLED for (int v = 0; v < V; v++)
        store_some(out + v * WIDTH, made[v] * scale, some);
}

// out (outer, inner) of x (outer, n, inner).
static void columns(const reduce_record *r, const float *x, float *out) {
    int64_t i = 0;
    for (; i + ADJACENT * WIDTH <= r->inner; i += ADJACENT * WIDTH)
        some_columns(ADJACENT, r, x + i, WIDTH, out + i);
    for (; i < r->inner; i += WIDTH) {
        const int64_t rest = r->inner - i;
        some_columns(1, r, x + i, rest < WIDTH ? rest : WIDTH, out + i);
    }
}

// Rows of a few elements: a lane is a row, so that nothing is added across lanes.
static void narrow(const reduce_record *r, const float *x, float *out, int64_t rows) {
    const int64_t width = r->width;
    const int is_max = r->mode == REDUCE_MAX;
    for (int64_t u = 0; u < rows; u += WIDTH, x += WIDTH * width) {
        const int64_t some = rows - u < WIDTH ? rows - u : WIDTH;
        vec total = all(is_max ? -INFINITY : 0);
        for (int64_t k = 0; k < width; k++) {
            vec v = {0};
            if (some == WIDTH) {
                UNROLLED for (int lane = 0; lane < WIDTH; lane++)
                    v[lane] = x[lane * width + k];
            } else {
                for (int lane = 0; lane < some; lane++) v[lane] = x[lane * width + k];
            }
            total = is_max ? greater(total, v) : total + v;
        }
        store_some(out + u, is_max ? total : total * (float)r->scale, some);
    }
}

void reduce(const void *record, const call *c, int64_t part, int64_t parts) {
    enum { NARROW = 16 };
    const reduce_record *r = record;
    SHARE(r->outer);
    if (r->inner == 1 && r->width <= NARROW) {
        const float *x = (const float *)at(c, r->x) + first * r->width;
        narrow(r, x, (float *)at(c, r->out) + first, behind - first);
        return;
    }
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * r->width * r->inner;
        float *out = (float *)at(c, r->out) + u * r->inner;
        if (r->inner > 1)
            columns(r, x, out);
        else if (r->mode == REDUCE_MAX)
            *out = row_greatest(x, r->width);
        else
            *out = row_sum(x, r->width) * (float)r->scale;
    }
}
