// Running sums along rows, in double precision.
#include "call.h"

enum { TOGETHER = 8 };  // rows: one addition does not wait for another's

INLINE void running(const cum_sum_record *r, const float *x, float *out, int64_t rows) {
    const int64_t width = r->width, step = r->reverse ? -1 : 1;
    int64_t k = r->reverse ? width - 1 : 0;
    double sums[TOGETHER] = {0};
    for (int64_t n = 0; n < width; n++, k += step)
        for (int64_t j = 0; j < rows; j++) {
            const double before = sums[j];
            sums[j] += x[j * width + k];
            out[j * width + k] = (float)(r->exclusive ? before : sums[j]);
        }
}

void cum_sum(const void *record, const call *c, int64_t part, int64_t parts) {
    const cum_sum_record *r = record;
    SHARE((r->rows + TOGETHER - 1) / TOGETHER);
    for (int64_t u = first; u < behind; u++) {
        const int64_t start = u * TOGETHER * r->width, rest = r->rows - u * TOGETHER;
        const float *x = (const float *)at(c, r->x) + start;
        float *out = (float *)at(c, r->out) + start;
        if (rest >= TOGETHER)
            running(r, x, out, TOGETHER);
        else
            running(r, x, out, rest);
    }
}
