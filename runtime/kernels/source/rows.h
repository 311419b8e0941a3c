// Sums along a row of a matrix, and its maximum.
#pragma once
#include <math.h>

#include "vector.h"

// Whole vectors of a row of n, then the rest of it, followed by zeros or `empty`.
#define OVER(n, body, some)                            \
    {                                                  \
        int64_t i = 0;                                 \
        for (; i + WIDTH <= (n); i += WIDTH) { body; } \
        const int64_t rest = (n)-i;                    \
        if (rest) { some; }                            \
    }

enum { FETCHED = 512 };  // elements that memory is asked for before they are read

static inline float short_sum(const float *x, int64_t n) {
    vec s[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 * WIDTH <= n; i += 4 * WIDTH)
        UNROLLED for (int u = 0; u < 4; u++) {
            __builtin_prefetch(x + i + u * WIDTH + FETCHED);
            s[u] += load(x + i + u * WIDTH);
        }
    for (; i + WIDTH <= n; i += WIDTH) s[0] += load(x + i);
    if (i < n) s[1] += load_some(x + i, n - i);
    return sum_of((s[0] + s[1]) + (s[2] + s[3]));
}

// The sum of a row; of a long one as the sum of those of its parts, to round less.
static inline float row_sum(const float *x, int64_t n) {
    enum { PART = 4096 };
    float total = short_sum(x, n < PART ? n : PART);
    for (int64_t i = PART; i < n; i += PART)
        total += short_sum(x + i, n - i < PART ? n - i : PART);
    return total;
}

static inline float row_greatest(const float *x, int64_t n) {
    if (n < WIDTH) return greatest_of(load_ahead_of(all(-INFINITY), x, n));
    vec m[4] = {all(-INFINITY), all(-INFINITY), all(-INFINITY), all(-INFINITY)};
    int64_t i = 0;
    for (; i + 4 * WIDTH <= n; i += 4 * WIDTH)
        UNROLLED for (int u = 0; u < 4; u++) m[u] = greater(m[u], load(x + i + u * WIDTH));
    for (; i + WIDTH <= n; i += WIDTH) m[0] = greater(m[0], load(x + i));
    if (i < n) m[1] = greater(m[1], load(x + n - WIDTH));
    return greatest_of(greater(greater(m[0], m[1]), greater(m[2], m[3])));
}

static inline float row_squares(const float *x, int64_t n, float mean) {
    vec s[2] = {{0}};
    int64_t i = 0;
    for (; i + 2 * WIDTH <= n; i += 2 * WIDTH)
        UNROLLED for (int u = 0; u < 2; u++) {
            vec d = load(x + i + u * WIDTH) - mean;
            s[u] += d * d;
        }
    float total = sum_of(s[0] + s[1]);
    for (; i < n; i++) total += (x[i] - mean) * (x[i] - mean);
    return total;
}
