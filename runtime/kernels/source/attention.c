// Attention without the matrix of scores: a few queries of one head at a time.
//
// Keys after the last one that a boolean mask shows are not read: spare capacity of a
// cache costs nothing.
#include <math.h>

#include "call.h"
#include "dropout.h"
#include "functions.h"
#include "mask.h"
#include "products.h"

void softmax_row(const float *x, float *y, int64_t n, int zero_if_empty, float *kept);

enum {
    QUERIES = MOST_ROWS,
    FEW = 2,      // queries for which keys and values are read in place
    VECTORS = 4,  // of a value that are summed at a time
    SUMMED = 128  // values that are summed one by one: such sums are summed apart
};

// The number of keys up to the last one that some query sees.
static int64_t keys_seen(const attention_record *r, const char *mask) {
    if (!mask || !r->mask_is_bool || !r->zero_if_empty || r->blocked != -INFINITY)
        return r->keys;
    int64_t n = 0;
    for (int64_t t = 0; t < (r->mask_query ? r->queries : 1); t++) {
        const char *row = mask + t * r->mask_query;
        int64_t last = r->keys;
        while (last > n && !row[(last - 1) * r->mask_key]) last--;
        n = last;
    }
    return n;
}

static void masked_row(const attention_record *r, const char *mask, int64_t n,
                       float *scores) {
    masked(mask, (int)r->mask_is_bool, r->mask_key, n, (float)r->blocked, scores);
}

// Weights of keys from the first on, some of which are dropped.
static void drop_some(const dropout *d, int64_t place, int64_t n, float *weights) {
    for (int64_t i = 0; i < n; i += TOGETHER) {
        const int64_t some = n - i < TOGETHER ? n - i : TOGETHER;
        float by[TOGETHER];
        factors(d, place + i, some, by);
        for (int64_t j = 0; j < some; j++) weights[i + j] *= by[j];
    }
}

// The keys before the first one that a causal query does not see.
static int64_t seen_by(const attention_record *r, int64_t query, int64_t keys) {
    return r->is_causal && query < keys ? query + 1 : keys;
}

static float dot(const float *x, const float *y, int64_t n) {
    vec s[2] = {{0}};
    int64_t i = 0;
    for (; i + 2 * WIDTH <= n; i += 2 * WIDTH)
        UNROLLED for (int u = 0; u < 2; u++)
            s[u] += load(x + i + u * WIDTH) * load(y + i + u * WIDTH);
    for (; i < n; i += WIDTH) s[0] += load_up_to(x + i, n - i) * load_up_to(y + i, n - i);
    return sum_of(s[0] + s[1]);
}

// Some vectors of the sum of n values, each times its weight.
INLINE void weighted(const int V, const float *weight, const float *v, int64_t step,
                     int64_t n, float *out, int64_t size) {
    vec sum[VECTORS];
    UNROLLED for (int u = 0; u < V; u++) sum[u] = (vec){0};
    for (int64_t j = 0; j < n;) {
        const int64_t until = j + SUMMED < n ? j + SUMMED : n;
        vec part[VECTORS];
        UNROLLED for (int u = 0; u < V; u++) part[u] = (vec){0};
        for (; j < until; j++) {
            const vec w = all(weight[j]);
            UNROLLED for (int u = 0; u < V; u++)
                part[u] += w * load_up_to(v + j * step + u * WIDTH, size - u * WIDTH);
        }
        UNROLLED for (int u = 0; u < V; u++) sum[u] += part[u];
    }
    UNROLLED for (int u = 0; u < V; u++)
        store_up_to(out + u * WIDTH, sum[u], size - u * WIDTH);
}

// One query: keys and values are read once, and nothing is packed.
static void one_query(const attention_record *r, const float *q, const float *k,
                      const float *v, const char *mask, const dropout *drop, int64_t place,
                      int64_t keys, float *scores, float *out, float *kept) {
    for (int64_t j = 0; j < keys; j++)
        scores[j] = dot(q, k + j * r->k_row, r->size) * (float)r->scale;
    if (mask) masked_row(r, mask, keys, scores);
    softmax_row(scores, scores, keys, (int)r->zero_if_empty, kept);
    if (drop) drop_some(drop, place, keys, scores);
    int64_t i = 0;
    for (; i + VECTORS * WIDTH <= r->values; i += VECTORS * WIDTH)
        weighted(VECTORS, scores, v + i, r->v_row, keys, out + i, VECTORS * WIDTH);
    for (; i < r->values; i += WIDTH)
        weighted(1, scores, v + i, r->v_row, keys, out + i, r->values - i);
}

static void one_head(const attention_record *r, const call *c, int64_t batch, int64_t head,
                     const dropout *drop, float *space) {
    const int64_t e = whole(r->values), shared = head / r->shared;
    const float *q = (const float *)at(c, r->q) + batch * r->q_batch + head * r->q_head;
    const float *k = (const float *)at(c, r->k) + batch * r->k_batch + shared * r->k_head;
    const float *v = (const float *)at(c, r->v) + batch * r->v_batch + shared * r->v_head;
    float *out = (float *)at(c, r->out) + batch * r->out_batch + head * r->out_head;
    float *kept = at(c, r->kept);  // two numbers of each query
    const int64_t row0 = (batch * r->heads + head) * r->queries;
    if (kept) kept += row0 * 2;
    const char *mask = at(c, r->mask);
    const int64_t wide = r->mask_is_bool ? 1 : 4;
    if (mask) mask += (batch * r->mask_batch + head * r->mask_head) * wide;
    const int64_t seen = keys_seen(r, mask), s = whole(seen);
    if (seen == 0) {  // of no key: 0
        for (int64_t t = 0; t < r->queries; t++)
            memset(out + t * r->out_row, 0, 4 * (size_t)r->values);
        if (kept) memset(kept, 0, 8 * (size_t)r->queries);
        return;
    }
    if (r->queries <= FEW) {
        for (int64_t t = 0; t < r->queries; t++)
            one_query(r, q + t * r->q_row, k, v,
                      mask ? mask + t * r->mask_query * wide : 0, drop,
                      (row0 + t) * r->keys, seen_by(r, t, seen), space,
                      out + t * r->out_row, kept ? kept + 2 * t : 0);
        return;
    }
    float *keys = space, *values = keys + r->size * s, *scores = values + seen * e,
          *rows = scores + QUERIES * s;
    panels(k, 1, r->k_row, r->size, seen, keys);
    panels(v, r->v_row, 1, seen, r->values, values);
    for (int64_t t = 0; t < r->queries; t += QUERIES) {
        const int64_t n = r->queries - t < QUERIES ? r->queries - t : QUERIES;
        const int64_t some = seen_by(r, t + n - 1, seen);  // of these queries together
        products(n, q + t * r->q_row, r->q_row, 1, packed_panels(keys, r->size), some,
                 scores, s);
        for (int64_t i = 0; i < n; i++) {
            float *row = scores + i * s;
            const int64_t own = seen_by(r, t + i, seen);
            for (int64_t j = 0; j < own; j += WIDTH)
                store(row + j, load(row + j) * (float)r->scale);
            if (mask) masked_row(r, mask + (t + i) * r->mask_query * wide, own, row);
            softmax_row(row, row, own, (int)r->zero_if_empty,
                        kept ? kept + 2 * (t + i) : 0);
            if (drop) drop_some(drop, (row0 + t + i) * r->keys, own, row);
            memset(row + own, 0, 4 * (size_t)(some - own));
        }
        const panels_of_rows of_values = {values, some, seen * LANES, LANES};
        products(n, scores, s, 1, of_values, e, rows, e);
        for (int64_t i = 0; i < n; i++)
            memcpy(out + (t + i) * r->out_row, rows + i * e, 4 * (size_t)r->values);
    }
}

// kept: each query's greatest score and the inverse of the sum of its exponentials.
// `space` holds for every share: keys, values, and scores and results of QUERIES.
void attention(const void *record, const call *c, int64_t part, int64_t parts) {
    const attention_record *r = record;
    float *space = (float *)at(c, r->space) + part * r->room;
    const void *keep = at(c, r->keep);
    const dropout drop = dropout_of(keep, r->keep_bound, r->keep_factor);
    SHARE(r->batches * r->heads);
    for (int64_t u = first; u < behind; u++)
        one_head(r, c, u / r->heads, u % r->heads, keep ? &drop : 0, space);
}
