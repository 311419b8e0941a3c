// Products of rows with panels of LANES columns.
#pragma once
#include "turn.h"

#if WIDTH == 16  // accumulators, a row of the panels and one number fit the registers
enum { MOST_ROWS = 12, MOST_PANELS = 2 };
#define EACH_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#else
enum { MOST_ROWS = 6, MOST_PANELS = 1 };
#define EACH_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif

// Panels of k rows of LANES, `step` from one row to the next; each panel `apart` behind
// the one before.
typedef struct {
    const float *w;
    int64_t k, apart, step;
} panels_of_rows;

static inline panels_of_rows packed_panels(const float *w, int64_t k) {
    return (panels_of_rows){w, k, k * LANES, LANES};
}

// R rows of x (distances xs, xi) times N panels, to y (distance ys).
INLINE void product(const int R, const int N, const float *x, int64_t xs, int64_t xi,
                    const panels_of_rows *p, float *y, int64_t ys) {
    vec acc[MOST_ROWS][MOST_PANELS * PARTS];
    const int n = N * PARTS;
    const int64_t apart = p->apart;
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int v = 0; v < n; v++)
        acc[r][v] = (vec){0};
    const float *w = p->w;
    // Three rows share a pointer, as there are not registers for a pointer each.
    const float *third[(MOST_ROWS + 2) / 3];
    UNROLLED for (int r = 0; r < R; r += 3) third[r / 3] = x + r * xs;
    for (int64_t i = 0; i < p->k; i++, w += p->step) {
        vec row[MOST_PANELS * PARTS];
        UNROLLED for (int v = 0; v < n; v++)
            row[v] = in_register(load(w + v / PARTS * apart + v % PARTS * WIDTH));
        UNROLLED for (int r = 0; r < R; r++) {
            vec s = all(third[r / 3][r % 3 * xs]);
            UNROLLED for (int v = 0; v < n; v++) acc[r][v] += s * row[v];
        }
        UNROLLED for (int r = 0; r < R; r += 3) third[r / 3] += xi;
    }
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int v = 0; v < n; v++)
        store(y + r * ys + v * WIDTH, acc[r][v]);
}

INLINE void few_products(const int N, int64_t rows, const float *x, int64_t xs, int64_t xi,
                         const panels_of_rows *p, float *y, int64_t ys) {
#define ROWS(R) case R: product(R, N, x, xs, 1, p, y, ys); break;
#define COLUMNS(R) case R: product(R, N, x, 1, xi, p, y, ys); break;
    if (xi == 1)
        switch (rows) { EACH_COUNT(ROWS) }
    else
        switch (rows) { EACH_COUNT(COLUMNS) }
#undef ROWS
#undef COLUMNS
}

// Rows of x times panels with n columns, up to whole ones: y has room for those.
// x: distances xs between rows and xi between elements, one of which is 1.
static inline void products(int64_t rows, const float *x, int64_t xs, int64_t xi,
                            panels_of_rows p, int64_t n, float *y, int64_t ys) {
    for (int64_t j = 0; j < n;) {
        const int is_one = MOST_PANELS == 1 || n - j <= LANES;
        for (int64_t i = 0; i < rows; i += MOST_ROWS) {
            const int64_t few = rows - i < MOST_ROWS ? rows - i : MOST_ROWS;
            if (is_one)
                few_products(1, few, x + i * xs, xs, xi, &p, y + i * ys + j, ys);
            else
                few_products(MOST_PANELS, few, x + i * xs, xs, xi, &p, y + i * ys + j, ys);
        }
        const int64_t some = is_one ? 1 : MOST_PANELS;
        j += some * LANES;
        p.w += some * p.apart;
    }
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

// The first numbers of a block, zeros behind them.
INLINE void first_lanes(const float *from, int64_t some, float *to) {
    UNROLLED for (int64_t lane = 0; lane < LANES; lane += WIDTH) {
        const int64_t left = some - lane;
        store(to + lane, left > 0 ? load_up_to(from + lane, left) : (vec){0});
    }
}

// w (k, n) with any distances as panels (n / LANES, k, LANES), zeros behind column n.
static inline void panels(const float *w, int64_t row, int64_t column, int64_t k,
                          int64_t n, float *to) {
    for (int64_t j = 0; j < n; j += LANES, to += k * LANES) {
        const int64_t some = n - j < LANES ? n - j : LANES;
        if (column == 1) {
            for (int64_t i = 0; i < k; i++)
                first_lanes(w + i * row + j, some, to + i * LANES);
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
