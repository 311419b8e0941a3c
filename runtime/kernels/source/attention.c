// Attention without the matrix of scores: a few queries of one head at a time.
#include <math.h>

#include "call.h"
#include "functions.h"
#include "products.h"

void softmax_row(const float *x, float *y, int64_t n, int zero_if_empty);

enum { QUERIES = MOST_ROWS };

static void masked(const attention_record *r, const char *mask, float *scores) {
    for (int64_t i = 0; i < r->keys; i++)
        if (r->mask_is_bool)
            scores[i] = mask[i * r->mask_key] ? scores[i] : (float)r->blocked;
        else
            scores[i] += ((const float *)mask)[i * r->mask_key];
}

static void one_head(const attention_record *r, const call *c, int64_t batch, int64_t head,
                     float *space) {
    const int64_t s = whole(r->keys), e = whole(r->values), shared = head / r->shared;
    const float *q = (const float *)at(c, r->q) + batch * r->q_batch + head * r->q_head;
    const float *k = (const float *)at(c, r->k) + batch * r->k_batch + shared * r->k_head;
    const float *v = (const float *)at(c, r->v) + batch * r->v_batch + shared * r->v_head;
    float *out = (float *)at(c, r->out) + batch * r->out_batch + head * r->out_head;
    const char *mask = at(c, r->mask);
    const int64_t wide = r->mask_is_bool ? 1 : 4;
    if (mask) mask += (batch * r->mask_batch + head * r->mask_head) * wide;
    float *keys = space, *values = keys + r->size * s, *scores = values + r->keys * e,
          *rows = scores + QUERIES * s;
    panels(k, 1, r->k_row, r->size, r->keys, keys);
    panels(v, r->v_row, 1, r->keys, r->values, values);
    for (int64_t t = 0; t < r->queries; t += QUERIES) {
        const int64_t n = r->queries - t < QUERIES ? r->queries - t : QUERIES;
        for (int64_t j = 0; j < s; j += LANES)
            products(n, q + t * r->q_row, r->q_row, r->size, keys + j * r->size,
                     scores + j, s);
        for (int64_t i = 0; i < n; i++) {
            float *row = scores + i * s;
            for (int64_t j = 0; j < s; j += WIDTH)
                store(row + j, load(row + j) * (float)r->scale);
            if (mask) masked(r, mask + (t + i) * r->mask_query * wide, row);
            softmax_row(row, row, r->keys, (int)r->zero_if_empty);
        }
        for (int64_t j = 0; j < e; j += LANES)
            products(n, scores, s, r->keys, values + j * r->keys, rows + j, e);
        for (int64_t i = 0; i < n; i++)
            memcpy(out + (t + i) * r->out_row, rows + i * e, 4 * (size_t)r->values);
    }
}

// `space` has room for every share: keys, values, and scores and results of QUERIES.
void attention(const void *record, const call *c, int64_t part, int64_t parts) {
    const attention_record *r = record;
    float *space = (float *)at(c, r->space) + part * r->room;
    SHARE(r->batches * r->heads);
    for (int64_t u = first; u < behind; u++)
        one_head(r, c, u / r->heads, u % r->heads, space);
}
