// Squares of as many vectors as a vector has elements, turned: rows become columns; and
// the sums of such rows.
#pragma once
#include "vector.h"

// The two off-diagonal squares of `half` elements, swapped in a square of twice as many.
INLINE void swap_squares(const int half, vec *first, vec *second) {
    const vec a = *first, b = *second;
#if defined(__clang__)  // which has no __builtin_shuffle, and sees one in this
    vec p = a, q = b;
    UNROLLED for (int k = 0; k < WIDTH; k++) {
        if (k & half)
            p[k] = b[k - half];
        else
            q[k] = a[k + half];
    }
    *first = p;
    *second = q;
#else
    ivec one, two;
    UNROLLED for (int i = 0; i < WIDTH; i++) {
        one[i] = i & half ? WIDTH + i - half : i;
        two[i] = i & half ? WIDTH + i : i + half;
    }
    *first = __builtin_shuffle(a, b, one);
    *second = __builtin_shuffle(a, b, two);
#endif
}

INLINE void turn_squares(const int half, vec *rows) {
    UNROLLED for (int i = 0; i < WIDTH; i++)
        if (!(i & half)) swap_squares(half, rows + i, rows + i + half);
}

INLINE void turn(vec *rows) {
    turn_squares(1, rows);
    turn_squares(2, rows);
#if WIDTH >= 8
    turn_squares(4, rows);
#endif
#if WIDTH >= 16
    turn_squares(8, rows);
#endif
}

INLINE void add_halves(const int half, vec *rows) {
    UNROLLED for (int i = 0; i < WIDTH; i += 2 * half) {
        swap_squares(half, rows + i, rows + i + half);
        rows[i] += rows[i + half];
    }
}

// The sum of each row's elements. Overwrites the rows.
INLINE vec sums_of_rows(vec *rows) {
    add_halves(1, rows);
    add_halves(2, rows);
#if WIDTH >= 8
    add_halves(4, rows);
#endif
#if WIDTH >= 16
    add_halves(8, rows);
#endif
    return rows[0];
}

// Some rows and columns, one by one: y[i][j] = x[j][i].
INLINE void turn_some(const float *x, int64_t xc, float *y, int64_t yr, int64_t rows,
                      int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) y[i * yr + j] = x[i + j * xc];
}

// WIDTH rows of so many columns, at most WIDTH.
INLINE void turn_square(const float *x, int64_t xc, float *y, int64_t yr,
                        const int64_t columns) {
    vec square[WIDTH];
    UNROLLED for (int j = 0; j < WIDTH; j++)
        square[j] = j < columns ? load(x + j * xc) : (vec){0};
    turn(square);
    UNROLLED for (int i = 0; i < WIDTH; i++) {
        if (columns == WIDTH)
            store(y + i * yr, square[i]);
        else
            store_some(y + i * yr, square[i], columns);
    }
}

// x is contiguous along rows, y along columns. The last rows are in a square with some
// before them, which are written twice.
static inline void turned(const float *x, int64_t xc, float *y, int64_t yr, int64_t rows,
                   int64_t columns) {
    if (rows < WIDTH) {
        turn_some(x, xc, y, yr, rows, columns);
        return;
    }
    const int64_t last = rows - WIDTH;
    for (int64_t next = 0; next < rows; next += WIDTH) {
        const int64_t i = next < last ? next : last;
        for (int64_t j = 0; j < columns; j += WIDTH) {
            const float *from = x + i + j * xc;
            float *to = y + i * yr + j;
            if (columns - j >= WIDTH)
                turn_square(from, xc, to, yr, WIDTH);
            else if (columns - j > WIDTH / 4)
                turn_square(from, xc, to, yr, columns - j);
            else
                turn_some(from, xc, to, yr, WIDTH, columns - j);
        }
    }
}
