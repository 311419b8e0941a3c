// Cross entropy of classes, and its gradient: x (rows, width, inner), classes along width.
#include "call.h"
#include "softmax.h"

// The class of each target and its weight, 0 and 0 of those to ignore; for a mean weights
// are divided by their sum, and `blank` is NaN where that is 0. No class is a fault.
void target_classes(const void *record, const call *c, int64_t part, int64_t parts) {
    const target_classes_record *r = record;
    const int64_t *targets = at(c, r->targets);
    const float *weight = at(c, r->weight);
    int64_t *out = at(c, r->out);
    float *by = at(c, r->by), *blank = at(c, r->blank);
    double total = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const int is_ignored = r->ignores && targets[i] == r->ignored;
        out[i] = is_ignored ? 0 : targets[i];
        if ((uint64_t)out[i] >= (uint64_t)r->classes) {
            *(int64_t *)at(c, r->fault) = 1;
            return;
        }
        by[i] = is_ignored ? 0 : weight ? weight[out[i]] : 1;
        total += by[i];
    }
    blank[0] = r->is_mean && total == 0 ? NAN : 0;
    if (!r->is_mean || total == 0) return;
    for (int64_t i = 0; i < r->count; i++) by[i] /= (float)total;
}

// The loss of one place: NaN where there is no such class.
INLINE float loss(float most, const float *x, int64_t chosen, int64_t width, int64_t inner,
                  float total) {
    const float there = chosen >= 0 && chosen < width ? x[chosen * inner] : NAN;
    return most - there + logf(total);
}

enum { ADJACENT = 4 };  // vectors of columns at a time: as much of a row as is fetched

// Softmax of V vectors of columns, `inner` elements from one row to the next; of one
// vector, `some` columns are there.
INLINE void columns(const int V, const float *x, float *y, const int64_t *classes,
                    const float *by, float *out, int64_t width, int64_t inner,
                    int64_t some) {
    vec most[ADJACENT], total[ADJACENT], share[ADJACENT];
    UNROLLED for (int v = 0; v < V; v++) {
        most[v] = load_up_to(x + v * WIDTH, some);
        total[v] = (vec){0};
    }
    for (int64_t k = 1; k < width; k++)
        UNROLLED for (int v = 0; v < V; v++)
            most[v] = greater(most[v], load_up_to(x + k * inner + v * WIDTH, some));
    for (int64_t k = 0; k < width; k++)
        UNROLLED for (int v = 0; v < V; v++) {
            const int64_t p = k * inner + v * WIDTH;
            const vec e = exponential(load_up_to(x + p, some) - most[v]);
            total[v] += e;
            store_up_to(y + p, e, some);
        }
    UNROLLED for (int v = 0; v < V; v++) share[v] = 1.f / total[v];
    for (int64_t k = 0; k < width; k++)
        UNROLLED for (int v = 0; v < V; v++) {
            float *to = y + k * inner + v * WIDTH;
            store_up_to(to, load_up_to(to, some) * share[v], some);
        }
    UNROLLED for (int v = 0; v < V; v++)
        for (int64_t i = 0; i < some; i++) {
            const int64_t at = v * WIDTH + i;
            out[at] = by[at] * loss(most[v][i], x + at, classes[at], width, inner,
                                    total[v][i]);
        }
}

// -log(softmax(x)) at a class times a share of the place's, and the softmax.
void cross_entropy(const void *record, const call *c, int64_t part, int64_t parts) {
    const cross_entropy_record *r = record;
    const int64_t width = r->width, inner = r->inner, each = width * inner;
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++) {
        const int64_t *classes = (const int64_t *)at(c, r->classes) + u * inner;
        const float *by = (const float *)at(c, r->by) + u * inner;
        const float *x = (const float *)at(c, r->x) + u * each;
        float *y = (float *)at(c, r->softmax) + u * each;
        float *out = (float *)at(c, r->out) + u * inner;
        if (inner == 1) {
            const float most = row_greatest(x, width), total = powers(x, y, width, most);
            times(y, width, 1 / total);
            out[0] = loss(most, x, classes[0], width, 1, total) * by[0];
            continue;
        }
        int64_t i = 0;
        for (; i + ADJACENT * WIDTH <= inner; i += ADJACENT * WIDTH)
            columns(ADJACENT, x + i, y + i, classes + i, by + i, out + i, width, inner,
                    WIDTH);
        for (; i < inner; i += WIDTH)
            columns(1, x + i, y + i, classes + i, by + i, out + i, width, inner,
                    inner - i < WIDTH ? inner - i : WIDTH);
    }
}

// softmax, less 1 at the class, times the place's share of the gradient.
void cross_entropy_gradient(const void *record, const call *c, int64_t part,
                            int64_t parts) {
    const cross_entropy_gradient_record *r = record;
    const int64_t width = r->width, inner = r->inner, each = width * inner;
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++) {
        const int64_t *classes = (const int64_t *)at(c, r->classes) + u * inner;
        const float *by = (const float *)at(c, r->by) + u * inner;
        const float *g = (const float *)at(c, r->g) + (r->is_summed ? 0 : u * inner);
        const float *y = (const float *)at(c, r->softmax) + u * each;
        float *out = (float *)at(c, r->out) + u * each;
        if (inner == 1) {
            const float slope = g[0] * by[0];
            OVER(width, store(out + i, load(y + i) * slope),
                 store_some(out + i, load_some(y + i, rest) * slope, rest))
            if (classes[0] >= 0 && classes[0] < width) out[classes[0]] -= slope;
            continue;
        }
        for (int64_t i = 0; i < inner; i += WIDTH) {
            const int64_t some = inner - i < WIDTH ? inner - i : WIDTH;
            const vec along = r->is_summed ? all(g[0]) : load_up_to(g + i, some);
            const vec slope = along * load_up_to(by + i, some);
            for (int64_t k = 0; k < width; k++) {
                const int64_t p = k * inner + i;
                store_up_to(out + p, load_up_to(y + p, some) * slope, some);
            }
            for (int64_t j = 0; j < some; j++) {
                const int64_t chosen = classes[i + j];
                if (chosen >= 0 && chosen < width) out[chosen * inner + i + j] -= slope[j];
            }
        }
    }
}
