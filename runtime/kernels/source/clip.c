// Norms of gradients, and the factors that limit them.
#include <math.h>

#include "call.h"

enum { BLOCK = POWERS_BLOCK };

typedef double half __attribute__((vector_size(4 * WIDTH)));  // of a vector's elements
typedef float narrow __attribute__((vector_size(2 * WIDTH)));

INLINE half widened(const float *p) {
    narrow v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, half);
}

static double sum_of_squares(const float *x, int64_t n) {
    enum { LENGTH = WIDTH / 2, SUMS = 4 };
    half sums[SUMS] = {0};
    int64_t i = 0;
    for (; i + SUMS * LENGTH <= n; i += SUMS * LENGTH)
        UNROLLED for (int s = 0; s < SUMS; s++) {
            const half v = widened(x + i + s * LENGTH);
            sums[s] += v * v;
        }
    const half both = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double total = 0;
    for (int lane = 0; lane < LENGTH; lane++) total += both[lane];
    for (; i < n; i++) total += (double)x[i] * x[i];
    return total;
}

// The greater of two, NaN where one is.
static double larger(double a, double b) { return a > b || a != a ? a : b; }

static double of_block(const float *x, int64_t n, double p) {
    if (p == 2) return sum_of_squares(x, n);
    double total = 0;
    if (isinf(p))
        for (int64_t i = 0; i < n; i++) total = larger(fabs((double)x[i]), total);
    else
        for (int64_t i = 0; i < n; i++) total += pow(fabs((double)x[i]), p);
    return total;
}

// out[block] <- the sum of |x| ** p of a block of elements; the largest |x| for p
// infinite. Blocks are the same for any number of threads.
void powers(const void *record, const call *c, int64_t part, int64_t parts) {
    const powers_record *r = record;
    const float *x = at(c, r->x);
    double *out = at(c, r->out);
    SHARE((r->count + BLOCK - 1) / BLOCK);
    for (int64_t b = first; b < behind; b++) {
        const int64_t left = r->count - b * BLOCK;
        out[b] = of_block(x + b * BLOCK, left < BLOCK ? left : BLOCK, r->p);
    }
}

// out[0] <- min(limit / (norm + epsilon), 1), of the norm whose powers x has.
void clip_factor(const void *record, const call *c, int64_t part, int64_t parts) {
    const clip_factor_record *r = record;
    const double *x = at(c, r->x);
    SHARE(1);
    if (first == behind) return;
    double norm = 0;
    for (int64_t i = 0; i < r->count; i++)
        norm = isinf(r->p) ? larger(x[i], norm) : norm + x[i];
    if (!isinf(r->p)) norm = r->p == 2 ? sqrt(norm) : pow(norm, 1 / r->p);
    const double factor = r->limit / (norm + r->epsilon);
    *(float *)at(c, r->out) = (float)(factor > 1 ? 1 : factor);
}
