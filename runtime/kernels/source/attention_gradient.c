// Gradients of attention without the matrix of scores.
//
// Scores of a block of queries and keys are computed again from the greatest score of
// each query and the sum of its exponentials, which the forward pass has kept.
#include <math.h>

#include "call.h"
#include "dropout.h"
#include "functions.h"
#include "mask.h"
#include "products.h"
#include "rows.h"

enum { QUERIES = 96, KEYS = 256 };  // of a block; whole panels of rows and lanes

typedef struct {
    float *keys_turned, *values_turned, *keys, *dk, *dv, *queries, *slopes, *weights,
        *dscores, *sums;
    int64_t size, values, wide;  // whole lanes of a key, a value and a block of keys
} space_of_share;

static space_of_share spread(const attention_gradient_record *r, float *space) {
    space_of_share s = {.size = whole(r->size), .values = whole(r->values),
                        .wide = whole(r->keys < KEYS ? r->keys : KEYS)};
    s.keys_turned = space;
    s.values_turned = s.keys_turned + s.wide * r->size;
    s.keys = s.values_turned + s.wide * r->values;
    s.dk = s.keys + s.wide * s.size;
    s.dv = s.dk + s.wide * s.size;
    s.queries = s.dv + s.wide * s.values;
    s.slopes = s.queries + QUERIES * s.size;
    s.weights = s.slopes + QUERIES * s.values;
    s.dscores = s.weights + QUERIES * s.wide;
    s.sums = s.dscores + QUERIES * s.wide;
    return s;
}

static void add_to(float *to, const float *from, int64_t n) {
    OVER(n, store(to + i, load(to + i) + load(from + i)),
         for (int64_t k = i; k < n; k++) to[k] += from[k])
}

static float row_product(const float *x, const float *y, int64_t n) {
    vec s = {0};
    OVER(n, s += load(x + i) * load(y + i),
         s += load_some(x + i, rest) * load_some(y + i, rest))
    return sum_of(s);
}

// out (m, n) = x (m, k) times panels w (n / LANES, k, LANES); a row of out has `step`.
static void times_panels(const float *x, int64_t row, int64_t m, int64_t k, const float *w,
                         int64_t n, float *out, int64_t step) {
    products(m, x, row, 1, packed_panels(w, k), n, out, step);
}

// The same of x (k, m) turned.
static void turned_times_panels(const float *x, int64_t row, int64_t m, int64_t k,
                                const float *w, int64_t n, float *out, int64_t step) {
    products(m, x, 1, row, packed_panels(w, k), n, out, step);
}

// One query's scores of some keys, from key `start` on, as its weights.
static void weights_of_row(const attention_gradient_record *r, float *scores, int64_t n,
                           const char *mask, int64_t query, int64_t start,
                           const float *kept) {
    const float most = kept[0], share = kept[1], scale = (float)r->scale;
    for (int64_t j = 0; j < n; j += WIDTH) store(scores + j, load(scores + j) * scale);
    if (mask) {
        mask += (start * r->mask_key + query * r->mask_query) * (r->mask_is_bool ? 1 : 4);
        masked(mask, (int)r->mask_is_bool, r->mask_key, n, -INFINITY, scores);
    }
    if (r->is_causal)
        for (int64_t j = query < start ? 0 : query + 1 - start; j < n; j++)
            scores[j] = -INFINITY;
    for (int64_t j = 0; j < n; j += WIDTH)
        store(scores + j, exponential(load(scores + j) - most) * share);
}

typedef struct {
    const float *q, *g, *y, *kept;
    const char *mask;
    const dropout *drop;
    int64_t place;  // of its first weight in dropout's mask
    float *dq;
} one_head;

static one_head head_of(const attention_gradient_record *r, const call *c,
                        const dropout *drop, int64_t batch, int64_t head) {
    const int64_t place = batch * r->heads + head;
    const char *mask = at(c, r->mask);
    const int64_t before = batch * r->mask_batch + head * r->mask_head;
    return (one_head){
        .q = (const float *)at(c, r->q) + batch * r->q_batch + head * r->q_head,
        .g = (const float *)at(c, r->g) + batch * r->g_batch + head * r->g_head,
        .y = (const float *)at(c, r->y) + batch * r->y_batch + head * r->y_head,
        .kept = (const float *)at(c, r->kept) + place * r->queries * 2,
        .mask = mask ? mask + before * (r->mask_is_bool ? 1 : 4) : 0,
        .drop = drop,
        .place = place * r->queries * r->keys,
        .dq = (float *)at(c, r->dq) + batch * r->dq_batch + head * r->dq_head,
    };
}

// What m queries from t on and n keys from `start` on, of `all` in the block, give each other.
static void block(const attention_gradient_record *r, const one_head *h,
                  const space_of_share *s, int64_t t, int64_t m, int64_t start, int64_t n,
                  int64_t all) {
    const float *q = h->q + t * r->q_row, *g = h->g + t * r->g_row;
    const int64_t wide = whole(n);
    times_panels(q, r->q_row, m, r->size, s->keys_turned, wide, s->weights, wide);
    times_panels(g, r->g_row, m, r->values, s->values_turned, wide, s->dscores, wide);
    for (int64_t i = 0; i < m; i++) {
        float *w = s->weights + i * wide, *d = s->dscores + i * wide;
        const float level =
            row_product(g + i * r->g_row, h->y + (t + i) * r->y_row, r->values);
        weights_of_row(r, w, n, h->mask, t + i, start, h->kept + (t + i) * 2);
        if (h->drop) {
            float by[KEYS];
            factors(h->drop, h->place + (t + i) * r->keys + start, n, by);
            for (int64_t j = 0; j < n; j++) {
                d[j] = w[j] * (d[j] * by[j] - level) * (float)r->scale;
                w[j] *= by[j];
            }
            continue;
        }
        for (int64_t j = 0; j < wide; j += WIDTH)
            store(d + j, load(w + j) * (load(d + j) - level) * (float)r->scale);
    }
    const panels_of_rows keys = {s->keys, n, all * LANES, LANES};
    products(m, s->dscores, wide, 1, keys, s->size, s->sums, s->size);
    for (int64_t i = 0; i < m; i++) {
        float *row = h->dq + (t + i) * r->dq_row;
        if (start)
            add_to(row, s->sums + i * s->size, r->size);
        else
            memcpy(row, s->sums + i * s->size, 4 * (size_t)r->size);
    }
    panels(q, r->q_row, 1, m, r->size, s->queries);
    turned_times_panels(s->dscores, wide, n, m, s->queries, s->size, s->sums, s->size);
    add_to(s->dk, s->sums, n * s->size);
    panels(g, r->g_row, 1, m, r->values, s->slopes);
    turned_times_panels(s->weights, wide, n, m, s->slopes, s->values, s->sums, s->values);
    add_to(s->dv, s->sums, n * s->values);
}

// A unit is a head of keys with all heads of queries that share it.
void attention_gradient(const void *record, const call *c, int64_t part, int64_t parts) {
    const attention_gradient_record *r = record;
    const space_of_share s = spread(r, (float *)at(c, r->space) + part * r->room);
    const int64_t groups = r->heads / r->shared;
    const void *keep = at(c, r->keep);
    const dropout dropped = dropout_of(keep, r->keep_bound, r->keep_factor);
    const dropout *drop = keep ? &dropped : 0;
    SHARE(r->batches * groups);
    for (int64_t u = first; u < behind; u++) {
        const int64_t batch = u / groups, group = u % groups;
        const float *k = (const float *)at(c, r->k) + batch * r->k_batch + group * r->k_head;
        const float *v = (const float *)at(c, r->v) + batch * r->v_batch + group * r->v_head;
        float *dk = (float *)at(c, r->dk) + batch * r->dk_batch + group * r->dk_head;
        float *dv = (float *)at(c, r->dv) + batch * r->dv_batch + group * r->dv_head;
        for (int64_t start = 0; start < r->keys; start += KEYS) {
            const int64_t n = r->keys - start < KEYS ? r->keys - start : KEYS;
            const float *some = k + start * r->k_row;
            panels(some, 1, r->k_row, r->size, n, s.keys_turned);
            panels(v + start * r->v_row, 1, r->v_row, r->values, n, s.values_turned);
            panels(some, r->k_row, 1, n, r->size, s.keys);
            memset(s.dk, 0, 4 * (size_t)(n * s.size));
            memset(s.dv, 0, 4 * (size_t)(n * s.values));
            for (int64_t shared = 0; shared < r->shared; shared++) {
                const one_head h =
                    head_of(r, c, drop, batch, group * r->shared + shared);
                for (int64_t t = 0; t < r->queries; t += QUERIES) {
                    const int64_t m = r->queries - t < QUERIES ? r->queries - t : QUERIES;
                    const int64_t left = t + m - start;  // keys that the last query sees
                    const int64_t seen = r->is_causal && left < n ? left : n;
                    if (seen > 0) block(r, &h, &s, t, m, start, seen, n);
                }
            }
            for (int64_t j = 0; j < n; j++) {
                memcpy(dk + (start + j) * r->dk_row, s.dk + j * s.size,
                       4 * (size_t)r->size);
                memcpy(dv + (start + j) * r->dv_row, s.dv + j * s.values,
                       4 * (size_t)r->values);
            }
        }
    }
}
