// Products of a few rows with a panel of LANES columns.
#pragma once
#include "vector.h"

enum { MOST_ROWS = 6 };

// R rows of x (distances xs, xi) times a panel w (k, LANES), to y (distance ys).
INLINE void product(const int R, const float *x, int64_t xs, int64_t xi, int64_t k,
                    const float *w, float *y, int64_t ys) {
    vec acc[MOST_ROWS][PARTS];
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int v = 0; v < PARTS; v++)
        acc[r][v] = (vec){0};
    for (int64_t i = 0; i < k; i++, w += LANES) {
        vec row[PARTS];
        UNROLLED for (int v = 0; v < PARTS; v++) row[v] = load(w + v * WIDTH);
        UNROLLED for (int r = 0; r < R; r++) {
            vec s = all(x[r * xs + i * xi]);
            UNROLLED for (int v = 0; v < PARTS; v++) acc[r][v] += s * row[v];
        }
    }
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int v = 0; v < PARTS; v++)
        store(y + r * ys + v * WIDTH, acc[r][v]);
}

static inline void products(int64_t rows, const float *x, int64_t xs, int64_t k,
                            const float *w, float *y, int64_t ys) {
    switch (rows) {
    case 1: product(1, x, xs, 1, k, w, y, ys); break;
    case 2: product(2, x, xs, 1, k, w, y, ys); break;
    case 3: product(3, x, xs, 1, k, w, y, ys); break;
    case 4: product(4, x, xs, 1, k, w, y, ys); break;
    case 5: product(5, x, xs, 1, k, w, y, ys); break;
    default: product(6, x, xs, 1, k, w, y, ys);
    }
}

// The same of rows that lie side by side: an element's next one is xi behind it.
static inline void products_of_columns(int64_t rows, const float *x, int64_t xi, int64_t k,
                                       const float *w, float *y, int64_t ys) {
    switch (rows) {
    case 1: product(1, x, 1, xi, k, w, y, ys); break;
    case 2: product(2, x, 1, xi, k, w, y, ys); break;
    case 3: product(3, x, 1, xi, k, w, y, ys); break;
    case 4: product(4, x, 1, xi, k, w, y, ys); break;
    case 5: product(5, x, 1, xi, k, w, y, ys); break;
    default: product(6, x, 1, xi, k, w, y, ys);
    }
}

INLINE int64_t whole(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

// w (k, n) with any distances as panels (n / LANES, k, LANES), zeros behind column n.
static inline void panels(const float *w, int64_t row, int64_t column, int64_t k,
                          int64_t n, float *to) {
    for (int64_t j = 0; j < n; j += LANES, to += k * LANES) {
        const int64_t some = n - j < LANES ? n - j : LANES;
        if (column == 1 && some == LANES) {
            for (int64_t i = 0; i < k; i++)
                memcpy(to + i * LANES, w + i * row + j, 4 * LANES);
            continue;
        }
        if (some < LANES) memset(to, 0, 4 * (size_t)(k * LANES));
        for (int64_t c = 0; c < some; c++) {
            const float *from = w + (j + c) * column;
            for (int64_t i = 0; i < k; i++) to[i * LANES + c] = from[i * row];
        }
    }
}
