// Products of two values: matrices along up to three axes of a batch.
#include "call.h"
#include "products.h"

enum { CHUNK = 48 };  // rows of a unit

// A last panel that has columns behind the row's end is computed aside.
static void rows_times(const matmul_record *r, const float *a, const float *w,
                       float *out, int64_t rows) {
    float aside[CHUNK * LANES];
    const int64_t whole = r->n / LANES * LANES, some = r->n - whole, apart = r->k * LANES;
    products(rows, a, r->a_row, r->a_column, (panels_of_rows){w, r->k, apart}, whole, out,
             r->n);
    if (!some) return;
    const panels_of_rows last = {w + whole * r->k, r->k, apart};
    products(rows, a, r->a_row, r->a_column, last, LANES, aside, LANES);
    for (int64_t k = 0; k < rows; k++)
        memcpy(out + k * r->n + whole, aside + k * LANES, 4 * (size_t)some);
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
