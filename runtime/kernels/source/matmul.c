// Products of two values: matrices along up to three axes of a batch.
#include "call.h"
#include "products.h"

enum {
    CHUNK = 48,   // rows of a unit
    NEAR = 4096,  // numbers of a matrix that stays in the first-level cache
};

// Whether whole panels of the other matrix are read where it is: packing pays where its
// rows are read again, and would lie in the same places of the cache.
static int is_read_in_place(const matmul_record *r) {
    return r->b_column == 1 && (r->rows <= MOST_ROWS || r->k * r->n <= NEAR);
}

// b: the other matrix; w: its panels. A last panel that has columns behind the row's end
// is computed aside.
static void rows_times(const matmul_record *r, const float *a, const float *b,
                       const float *w, float *out, int64_t rows) {
    float aside[CHUNK * LANES];
    const int64_t whole = r->n / LANES * LANES, some = r->n - whole;
    const panels_of_rows in_place = {b, r->k, LANES, r->b_row};
    products(rows, a, r->a_row, r->a_column,
             is_read_in_place(r) ? in_place : packed_panels(w, r->k), whole, out, r->n);
    if (!some) return;
    const panels_of_rows last = packed_panels(w + whole * r->k, r->k);
    products(rows, a, r->a_row, r->a_column, last, LANES, aside, LANES);
    for (int64_t k = 0; k < rows; k++)
        for (int64_t lane = 0; lane < some; lane += WIDTH)
            store_up_to(out + k * r->n + whole + lane, load(aside + k * LANES + lane),
                        some - lane);
}

// All panels of the other matrix, or the last one alone, into `space`.
static void pack(const matmul_record *r, const float *b, float *space) {
    const int64_t first = is_read_in_place(r) ? r->n / LANES * LANES : 0;
    panels(b + first * r->b_column, r->b_row, r->b_column, r->k, r->n - first,
           space + first * r->k);
}

// A unit is some rows of a matrix; the share's `space` has what is packed of its other one.
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
        if (packed != batch) pack(r, b, space);
        packed = batch;
        const int64_t rows = r->rows - start < CHUNK ? r->rows - start : CHUNK;
        rows_times(r, a + start * r->a_row, b, space, out + start * r->n, rows);
    }
}
