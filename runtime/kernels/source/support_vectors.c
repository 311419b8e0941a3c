// Kernels of rows and support vectors, votes of pairs of classes, and their coupling.
#include <math.h>

#include "call.h"
#include "functions.h"

enum { ROWS = 8 / PARTS };  // rows at a time: eight sums hide an operation's latency

// Products, or squared distances, of `rows` rows of x (stride `width`) and 16 vectors,
// which lie feature by feature.
INLINE void sums(const float *x, const float *vectors, int64_t width, const int rows,
                 const int is_apart, vec acc[ROWS][PARTS]) {
    UNROLLED for (int i = 0; i < rows; i++)
        UNROLLED for (int j = 0; j < PARTS; j++) acc[i][j] = (vec){0};
    for (int64_t f = 0; f < width; f++)
        UNROLLED for (int j = 0; j < PARTS; j++) {
            const vec v = load(vectors + f * LANES + j * WIDTH);
            UNROLLED for (int i = 0; i < rows; i++) {
                const vec a = all(x[i * width + f]), b = is_apart ? a - v : v;
                acc[i][j] += (is_apart ? b : a) * b;
            }
        }
}

// As NumPy, which takes a root where the power is a half.
static vec raised(vec x, double degree) {
    if (degree == 0.5) return root(x);
    if (degree == 2) return x * x;
    if (degree == 3) return x * x * x;
    for (int i = 0; i < WIDTH; i++) x[i] = powf(x[i], (float)degree);
    return x;
}

INLINE vec kernel_of(const svm_kernel_record *r, vec sum) {
    if (r->kernel == KERNEL_RBF) return exponential(sum * -(float)r->gamma);
    if (r->kernel == KERNEL_LINEAR) return sum;
    sum = sum * (float)r->gamma + (float)r->coef0;
    return r->kernel == KERNEL_SIGMOID ? hyperbolic_tangent(sum) : raised(sum, r->degree);
}

INLINE void some_rows(const svm_kernel_record *r, const float *x, const float *vectors,
                      float *out, const int rows) {
    for (int64_t s = 0; s < r->count; s += LANES) {
        vec acc[ROWS][PARTS];
        if (r->kernel == KERNEL_RBF)
            sums(x, vectors + s * r->width, r->width, rows, 1, acc);
        else
            sums(x, vectors + s * r->width, r->width, rows, 0, acc);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < PARTS && s + j * WIDTH < r->count; j++)
                store_up_to(out + i * r->count + s + j * WIDTH, kernel_of(r, acc[i][j]),
                            r->count - s - j * WIDTH);
    }
}

// out (rows, count) of x (rows, width) and vectors (blocks of 16, width, 16).
void svm_kernel(const void *record, const call *c, int64_t part, int64_t parts) {
    const svm_kernel_record *r = record;
    const float *x = at(c, r->x), *vectors = at(c, r->vectors);
    float *out = at(c, r->out);
    SHARE(r->rows);
    int64_t u = first;
    for (; u + ROWS <= behind; u += ROWS)
        some_rows(r, x + u * r->width, vectors, out + u * r->count, ROWS);
    for (; u < behind; u++) some_rows(r, x + u * r->width, vectors, out + u * r->count, 1);
}

// scores (rows, pairs), pairs (0, 1), (0, 2), ..., (1, 2), ...; out (rows, classes)
void pairwise_votes(const void *record, const call *c, int64_t part, int64_t parts) {
    const pairwise_votes_record *r = record;
    const int64_t n = r->classes, pairs = n * (n - 1) / 2;
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++) {
        const float *score = (const float *)at(c, r->scores) + u * pairs;
        int64_t *out = (int64_t *)at(c, r->out) + u * n;
        memset(out, 0, 8 * (size_t)n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++) out[*score++ > 0 ? i : j]++;
    }
}

// Wu, Lin and Weng's second method, by their iteration; q (n, n), p and qp (n).
static void coupled(const float *wins, float *out, int64_t n, double *q, double *p,
                    double *qp) {
    for (int64_t i = 0; i < n; i++) q[i * n + i] = 0, p[i] = 1 / (double)n;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) {
            float win = *wins++;
            win = win < 1e-7f ? 1e-7f : win > 1 - 1e-7f ? 1 - 1e-7f : win;
            const double w = win, other = 1 - w;
            q[i * n + j] = q[j * n + i] = -w * other;
            q[j * n + j] += w * w;
            q[i * n + i] += other * other;
        }
    for (int64_t turn = 0; turn < (n > 100 ? n : 100); turn++) {
        double pqp = 0;
        for (int64_t i = 0; i < n; i++) {
            qp[i] = 0;
            for (int64_t j = 0; j < n; j++) qp[i] += q[i * n + j] * p[j];
            pqp += p[i] * qp[i];
        }
        int is_moving = 0, is_number = 1;
        for (int64_t i = 0; i < n; i++) {
            const double error = fabs(qp[i] - pqp);
            is_moving |= error >= 0.005 / (double)n;
            is_number &= error == error;
        }
        if (!is_moving || !is_number) break;
        for (int64_t t = 0; t < n; t++) {
            const double own = q[t * n + t], step = (pqp - qp[t]) / own, scale = 1 + step;
            p[t] += step;
            pqp = (pqp + step * (step * own + 2 * qp[t])) / (scale * scale);
            for (int64_t j = 0; j < n; j++) {
                qp[j] = (qp[j] + step * q[t * n + j]) / scale;
                p[j] /= scale;
            }
        }
    }
    for (int64_t i = 0; i < n; i++) out[i] = (float)p[i];
}

void pairwise_coupling(const void *record, const call *c, int64_t part, int64_t parts) {
    const pairwise_coupling_record *r = record;
    const int64_t n = r->classes;
    double *q = (double *)at(c, r->space) + part * r->room, *p = q + n * n;
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++)
        coupled((const float *)at(c, r->wins) + u * (n * (n - 1) / 2),
                (float *)at(c, r->out) + u * n, n, q, p, p + n);
}
