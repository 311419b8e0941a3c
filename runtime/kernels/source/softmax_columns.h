// Softmax and its gradient over columns: elements `step` apart, a vector of columns at a
// time.
#pragma once
#include "functions.h"

// Adds up `term` for every row k of n: of few rows at a time, so that less is rounded.
#define SUM_OF_ROWS(total, n, term)                                  \
    vec total = {0};                                                 \
    for (int64_t start = 0; start < (n); start += 64) {              \
        const int64_t end = start + 64 < (n) ? start + 64 : (n);     \
        vec part = {0};                                              \
        for (int64_t k = start; k < end; k++) part += (term);        \
        total += part;                                               \
    }

INLINE void softmax_columns(const float *x, float *y, int64_t n, int64_t step, int64_t some,
                            int zero_if_empty, int is_log) {
    vec most = all(-INFINITY);
    for (int64_t k = 0; k < n; k++) most = greater(most, load_up_to(x + k * step, some));
    const ivec empty = zero_if_empty ? (ivec)(most == -INFINITY) : (ivec){0};
    const vec shift = choose(empty, all(0), most);
    SUM_OF_ROWS(sum, n, exponential(load_up_to(x + k * step, some) - shift))
    if (is_log) {
        for (int i = 0; i < WIDTH; i++) sum[i] = logf(sum[i]);
        for (int64_t k = 0; k < n; k++)
            store_some(y + k * step, load_up_to(x + k * step, some) - shift - sum, some);
        return;
    }
    const vec share = choose(empty, all(0), 1.f / sum);
    for (int64_t k = 0; k < n; k++)
        store_some(y + k * step, exponential(load_up_to(x + k * step, some) - shift) * share,
                   some);
}

// y: the result of softmax or log-softmax.
INLINE void softmax_columns_gradient(const float *g, const float *y, float *out, int64_t n,
                                     int64_t step, int64_t some, int is_log) {
    if (is_log) {
        SUM_OF_ROWS(total, n, load_up_to(g + k * step, some))
        for (int64_t k = 0; k < n; k++) {
            const vec power = exponential(load_up_to(y + k * step, some));
            store_some(out + k * step, load_up_to(g + k * step, some) - power * total, some);
        }
        return;
    }
    SUM_OF_ROWS(total, n, load_up_to(g + k * step, some) * load_up_to(y + k * step, some))
    for (int64_t k = 0; k < n; k++) {
        const vec v = load_up_to(g + k * step, some) - total;
        store_some(out + k * step, v * load_up_to(y + k * step, some), some);
    }
}

// Runs `body` for the share of the vectors of columns of arrays (rows, n, inner): at
// `place` is the first element of one, `some` are its columns.
#define EACH_COLUMNS(r, body)                                                          \
    {                                                                                  \
        const int64_t each = ((r)->inner + WIDTH - 1) / WIDTH;                         \
        SHARE((r)->rows * each);                                                       \
        for (int64_t u = first; u < behind; u++) {                                     \
            const int64_t i = u % each * WIDTH, rest = (r)->inner - i;                 \
            const int64_t place = u / each * (r)->width * (r)->inner + i;              \
            const int64_t some = rest < WIDTH ? rest : WIDTH;                          \
            if (some == WIDTH) {                                                       \
                const int64_t some = WIDTH;                                            \
                body;                                                                  \
            } else {                                                                   \
                body;                                                                  \
            }                                                                          \
        }                                                                              \
    }
