// Rows of tables by number, of floats or of codes that become floats; rows added up.
#include "bytes.h"
#include "call.h"
#include "rows.h"

// A number of one of n rows, counted from the end where it is negative.
INLINE int64_t from_start(int64_t id, int64_t n) { return id + (n & (id >> 63)); }

// n codes less their zero point, times their scale.
INLINE void values_of(const int8_t *codes, int64_t n, float scale, float zero, float *out) {
    OVER(n, store(out + i, (from_chars(codes + i) - zero) * scale),
         for (int64_t k = i; k < n; k++) out[k] = ((float)codes[k] - zero) * scale)
}

// The same of codes of 4 bits, two in a byte, the first one in the lower half.
static void values_of_halves(const uint8_t *codes, int64_t start, int64_t n, float scale,
                             float zero, float *out) {
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = start + k;
        const uint8_t code = at & 1 ? codes[at / 2] >> 4 : codes[at / 2] & 15;
        out[k] = ((float)((code ^ 8) - 8) - zero) * scale;
    }
}

// Rows of `bytes` each as they are. Returns whether a number was out of range.
INLINE int64_t picked(const gather_record *r, const int64_t *restrict ids, const char *x,
                      char *restrict out, int64_t first, int64_t behind, size_t bytes) {
    const int64_t rows = r->rows, count = r->count;
    int64_t fault = 0;
    for (int64_t u = first; u < behind;) {
        const int64_t lead = u / count, start = lead * count, end = start + count;
        const char *from = x + (size_t)(lead * rows) * bytes;
        for (const int64_t last = end < behind ? end : behind; u < last; u++) {
            const int64_t id = from_start(ids[u - start], rows);
            if ((uint64_t)id < (uint64_t)rows)
                memcpy(out + (size_t)u * bytes, from + (size_t)id * bytes, bytes);
            else
                fault = 1;
        }
    }
    return fault;
}

// A row of codes as floats.
static void decoded(const gather_record *r, const call *c, int64_t id, float *out) {
    const float *scales = at(c, r->scales), *zeros = at(c, r->zeros);
    const void *x = at(c, r->x);
    const int64_t start = id * r->width;
    int64_t of = id * r->by_row;
    for (int64_t i = 0; i < r->width; i += r->block, of++) {
        const int64_t left = r->width - i, n = left < r->block ? left : r->block;
        const float scale = scales[of], zero = zeros ? zeros[of] : 0;
        if (r->bits == 8)
            values_of((const int8_t *)x + start + i, n, scale, zero, out + i);
        else
            values_of_halves(x, start + i, n, scale, zero, out + i);
    }
}

// From the end where a number is negative. `fault` reports one out of range; the caller
// then falls back.
void gather(const void *record, const call *c, int64_t part, int64_t parts) {
    const gather_record *r = record;
    const int64_t *ids = at(c, r->ids);
    const char *x = at(c, r->x);
    char *out = at(c, r->out);
    int64_t fault = 0;
    SHARE(r->outer * r->count);
    if (r->bits) {
        for (int64_t u = first; u < behind; u++) {
            const int64_t id = from_start(ids[u], r->rows);
            if ((uint64_t)id < (uint64_t)r->rows)
                decoded(r, c, id, (float *)out + u * r->width);
            else
                fault = 1;
        }
    } else if (r->width == 1) {
        fault = picked(r, ids, x, out, first, behind, 4);
    } else if (r->width == 2) {
        fault = picked(r, ids, x, out, first, behind, 8);
    } else {
        fault = picked(r, ids, x, out, first, behind, 4 * (size_t)r->width);
    }
    if (fault) *(int64_t *)at(c, r->fault) = 1;
}

// Positions along some axes, the last of ids, as numbers of rows, added to `base`. One
// out of range is a fault, and 0.
void places(const void *record, const call *c, int64_t part, int64_t parts) {
    const places_record *r = record;
    const int64_t *sizes = at(c, r->sizes), *steps = at(c, r->steps);
    const int64_t *base = at(c, r->base);
    int64_t *out = at(c, r->out);
    SHARE(r->count);
    for (int64_t u = first; u < behind; u++) {
        const int64_t *ids = (const int64_t *)at(c, r->ids) + u * r->depth;
        out[u] = base[u];
        for (int64_t d = 0; d < r->depth; d++) {
            const int64_t id = from_start(ids[d], sizes[d]);
            if (id < 0 || id >= sizes[d])
                *(int64_t *)at(c, r->fault) = 1;
            else
                out[u] += id * steps[d];
        }
    }
}

// Numbers along the middle axis of (outer, rows, inner) as places in it, flattened. One
// out of range is a fault; the caller then falls back.
void places_along(const void *record, const call *c, int64_t part, int64_t parts) {
    const places_along_record *r = record;
    const int64_t *restrict ids = at(c, r->ids);
    const int64_t rows = r->rows, count = r->count, inner = r->inner;
    int64_t *restrict out = at(c, r->out), fault = 0;
    SHARE(r->outer * count);
    for (int64_t u = first; u < behind;) {
        const int64_t lead = u / count, end = (lead + 1) * count;
        for (const int64_t last = end < behind ? end : behind; u < last; u++)
            for (int64_t i = u * inner; i < (u + 1) * inner; i++) {
                const int64_t id = from_start(ids[i], rows);
                fault |= (uint64_t)id >= (uint64_t)rows;
                out[i] = (lead * rows + id - u) * inner + i;
            }
    }
    if (fault) *(int64_t *)at(c, r->fault) = 1;
}

// Rows of n elements set, or added to, one after another: those numbered from `first` up
// to `behind`, but `skip`.
INLINE void updated(float *restrict out, const int64_t *restrict ids,
                    const float *restrict updates, int64_t count, int64_t rows,
                    int64_t first, int64_t behind, int64_t skip, int64_t n, int is_sum) {
    for (int64_t u = 0; u < count; u++) {
        const int64_t id = from_start(ids[u], rows);
        if (id < first || id >= behind || id == skip) continue;
        const float *from = updates + u * n;
        float *to = out + id * n;
        if (is_sum)
            for (int64_t i = 0; i < n; i++) to[i] += from[i];
        else
            memcpy(to, from, 4 * (size_t)n);
    }
}

// Each share of the two kernels below reads all numbers: one is as fast as several where
// rows are single elements.

// out (rows, width): 0, and each row of g added to the row of its number.
void add_rows(const void *record, const call *c, int64_t part, int64_t parts) {
    const add_rows_record *r = record;
    const int64_t *ids = at(c, r->ids), n = r->width;
    const float *g = at(c, r->g);
    float *out = at(c, r->out);
    if (n == 1 && part > 0) return;
    if (n == 1) parts = 1;
    SHARE(r->rows);
    memset(out + first * n, 0, 4 * (size_t)((behind - first) * n));
    if (n == 1)
        updated(out, ids, g, r->count, r->rows, first, behind, r->skip, 1, 1);
    else
        updated(out, ids, g, r->count, r->rows, first, behind, r->skip, n, 1);
}

// x with rows set or added to by number, of those that are in range; the last of equal
// ones wins.
void set_rows(const void *record, const call *c, int64_t part, int64_t parts) {
    const set_rows_record *r = record;
    const int64_t *ids = at(c, r->ids), n = r->width;
    const float *updates = at(c, r->updates);
    float *out = at(c, r->out);
    if (n == 1 && part > 0) return;
    if (n == 1) parts = 1;
    SHARE(r->rows);
    memcpy(out + first * n, (const float *)at(c, r->x) + first * n,
           4 * (size_t)((behind - first) * n));
    if (n == 1 && r->is_sum)
        updated(out, ids, updates, r->count, r->rows, first, behind, -1, 1, 1);
    else if (n == 1)
        updated(out, ids, updates, r->count, r->rows, first, behind, -1, 1, 0);
    else
        updated(out, ids, updates, r->count, r->rows, first, behind, -1, n,
                r->is_sum != 0);
}
