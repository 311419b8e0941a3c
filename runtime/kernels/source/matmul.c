// Products of two values: matrices along up to three axes of a batch.
#include "call.h"
#include "products.h"

enum { CHUNK = 48 };  // rows of a unit

INLINE void some_rows(const matmul_record *r, int64_t few, const float *x, const float *w,
                      float *y, int64_t ys) {
    if (r->a_column == 1)
        products(few, x, r->a_row, r->k, w, y, ys);
    else
        products_of_columns(few, x, r->a_column, r->k, w, y, ys);
}

static void rows_times(const matmul_record *r, const float *a, const float *w,
                       float *out, int64_t rows) {
    float aside[MOST_ROWS * LANES];
    for (int64_t j = 0; j < r->n; j += LANES) {
        const int64_t some = r->n - j < LANES ? r->n - j : LANES;
        for (int64_t i = 0; i < rows; i += MOST_ROWS) {
            const int64_t few = rows - i < MOST_ROWS ? rows - i : MOST_ROWS;
            const float *x = a + i * r->a_row;
            float *y = out + i * r->n + j;
            if (some == LANES) {
                some_rows(r, few, x, w + j * r->k, y, r->n);
                continue;
            }
            some_rows(r, few, x, w + j * r->k, aside, LANES);
            for (int64_t k = 0; k < few; k++)
                memcpy(y + k * r->n, aside + k * LANES, 4 * (size_t)some);
        }
    }
}

// A unit is some rows of a matrix; its other matrix is packed into the share's `space`.
void matmul(const void *record, const call *c, int64_t part, int64_t parts) {
    const matmul_record *r = record;
    float *space = (float *)at(c, r->space) + part * r->room;
    const int64_t chunks = (r->rows + CHUNK - 1) / CHUNK;
    int64_t packed = -1;
    SHARE(r->size0 * r->size1 * r->size2 * chunks);
    for (int64_t u = first; u < behind; u++) {
        const int64_t batch = u / chunks, start = u % chunks * CHUNK;
        const int64_t i2 = batch % r->size2, rest = batch / r->size2;
        const int64_t i1 = rest % r->size1, i0 = rest / r->size1;
        const float *a = (const float *)at(c, r->a) + i0 * r->a0 + i1 * r->a1 + i2 * r->a2;
        const float *b = (const float *)at(c, r->b) + i0 * r->b0 + i1 * r->b1 + i2 * r->b2;
        float *out = (float *)at(c, r->out) + batch * r->rows * r->n;
        if (packed != batch) panels(b, r->b_row, r->b_column, r->k, r->n, space);
        packed = batch;
        const int64_t rows = r->rows - start < CHUNK ? r->rows - start : CHUNK;
        rows_times(r, a + start * r->a_row, space, out + start * r->n, rows);
    }
}
