// Attention without the matrix of scores: a few queries of one head at a time.
#include <math.h>

#include "call.h"
#include "functions.h"

void softmax_row(const float *x, float *y, int64_t n, int zero_if_empty);

enum { QUERIES = 6 };

// R rows of x (distance xs) times w (k, LANES columns at distance ws), to y.
INLINE void product(const int R, const float *x, int64_t xs, int64_t k, const float *w,
                    int64_t ws, float *y, int64_t ys) {
    vec acc[QUERIES][PARTS];
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int v = 0; v < PARTS; v++)
        acc[r][v] = (vec){0};
    for (int64_t i = 0; i < k; i++, w += ws) {
        vec row[PARTS];
        UNROLLED for (int v = 0; v < PARTS; v++) row[v] = load(w + v * WIDTH);
        UNROLLED for (int r = 0; r < R; r++) {
            vec s = all(x[r * xs + i]);
            UNROLLED for (int v = 0; v < PARTS; v++) acc[r][v] += s * row[v];
        }
    }
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int v = 0; v < PARTS; v++)
        store(y + r * ys + v * WIDTH, acc[r][v]);
}

static void products(int64_t rows, const float *x, int64_t xs, int64_t k, const float *w,
                     int64_t ws, float *y, int64_t ys) {
    switch (rows) {
    case 1: product(1, x, xs, k, w, ws, y, ys); break;
    case 2: product(2, x, xs, k, w, ws, y, ys); break;
    case 3: product(3, x, xs, k, w, ws, y, ys); break;
    case 4: product(4, x, xs, k, w, ws, y, ys); break;
    case 5: product(5, x, xs, k, w, ws, y, ys); break;
    default: product(6, x, xs, k, w, ws, y, ys);
    }
}

static int64_t whole(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

// Keys as (D, S) and values as (S, E), both with rows of whole blocks.
static void packed(const attention_record *r, const float *k, const float *v, float *keys,
                   float *values) {
    const int64_t s = whole(r->keys), e = whole(r->values);
    for (int64_t d = 0; d < r->size; d++) {
        for (int64_t i = 0; i < r->keys; i++) keys[d * s + i] = k[i * r->k_row + d];
        for (int64_t i = r->keys; i < s; i++) keys[d * s + i] = 0;
    }
    for (int64_t i = 0; i < r->keys; i++) {
        memcpy(values + i * e, v + i * r->v_row, 4 * (size_t)r->values);
        for (int64_t j = r->values; j < e; j++) values[i * e + j] = 0;
    }
}

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
    packed(r, k, v, keys, values);
    for (int64_t t = 0; t < r->queries; t += QUERIES) {
        const int64_t n = r->queries - t < QUERIES ? r->queries - t : QUERIES;
        for (int64_t j = 0; j < s; j += LANES)
            products(n, q + t * r->q_row, r->q_row, r->size, keys + j, s, scores + j, s);
        for (int64_t i = 0; i < n; i++) {
            float *row = scores + i * s;
            for (int64_t j = 0; j < s; j += WIDTH)
                store(row + j, load(row + j) * (float)r->scale);
            if (mask) masked(r, mask + (t + i) * r->mask_query * wide, row);
            softmax_row(row, row, r->keys, (int)r->zero_if_empty);
        }
        for (int64_t j = 0; j < e; j += LANES)
            products(n, scores, s, r->keys, values + j, e, rows + j, e);
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
