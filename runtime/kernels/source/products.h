// Products of a few rows with a panel of LANES columns.
#pragma once
#include "turn.h"

#if WIDTH == 16  // accumulators, a row of the panel and one number fit the registers
enum { MOST_ROWS = 12 };
#define EACH_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#else
enum { MOST_ROWS = 6 };
#define EACH_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif

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
#define ROWS(R) \
    case R: product(R, x, xs, 1, k, w, y, ys); break;
    switch (rows) { EACH_COUNT(ROWS) }
#undef ROWS
}

// The same of rows that lie side by side: an element's next one is xi behind it.
static inline void products_of_columns(int64_t rows, const float *x, int64_t xi, int64_t k,
                                       const float *w, float *y, int64_t ys) {
#define ROWS(R) \
    case R: product(R, x, 1, xi, k, w, y, ys); break;
    switch (rows) { EACH_COUNT(ROWS) }
#undef ROWS
}

INLINE int64_t whole(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

// Some columns, each contiguous and `column` behind the one before, as rows of LANES.
static inline void turned_panel(const float *w, int64_t column, int64_t k, int64_t some,
                                float *to) {
    for (int64_t lane = 0; lane < LANES; lane += WIDTH, w += WIDTH * column)
        for (int64_t i = 0; i < k; i += WIDTH) {
            const int64_t n = k - i < WIDTH ? k - i : WIDTH;
            vec rows[WIDTH];
            UNROLLED for (int c = 0; c < WIDTH; c++)
                rows[c] = lane + c >= some ? (vec){0}
                          : n == WIDTH     ? load(w + c * column + i)
                                           : load_some(w + c * column + i, n);
            turn(rows);
            UNROLLED for (int c = 0; c < WIDTH; c++)
                if (c < n) store(to + (i + c) * LANES + lane, rows[c]);
        }
}

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
        if (row == 1) {
            turned_panel(w + j * column, column, k, some, to);
            continue;
        }
        if (some < LANES) memset(to, 0, 4 * (size_t)(k * LANES));
        for (int64_t c = 0; c < some; c++) {
            const float *from = w + (j + c) * column;
            for (int64_t i = 0; i < k; i++) to[i * LANES + c] = from[i * row];
        }
    }
}
