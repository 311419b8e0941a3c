// Squares of as many vectors as a vector has elements, turned: rows become columns.
#pragma once
#include "vector.h"

#if defined(__clang__)
INLINE vec mixed(vec a, vec b, ivec from) {
    vec y;
    for (int i = 0; i < WIDTH; i++) y[i] = from[i] < WIDTH ? a[from[i]] : b[from[i] - WIDTH];
    return y;
}
#else
INLINE vec mixed(vec a, vec b, ivec from) { return __builtin_shuffle(a, b, from); }
#endif

// Swap the two off-diagonal squares of `half` elements in every square of twice as many.
INLINE void swap_squares(const int half, vec *rows) {
    ivec one, two;
    UNROLLED for (int i = 0; i < WIDTH; i++) {
        one[i] = i & half ? WIDTH + i - half : i;
        two[i] = i & half ? WIDTH + i : i + half;
    }
    UNROLLED for (int i = 0; i < WIDTH; i++) {
        if (i & half) continue;
        const vec a = rows[i], b = rows[i + half];
        rows[i] = mixed(a, b, one);
        rows[i + half] = mixed(a, b, two);
    }
}

INLINE void turn(vec *rows) {
    swap_squares(1, rows);
    swap_squares(2, rows);
#if WIDTH >= 8
    swap_squares(4, rows);
#endif
#if WIDTH >= 16
    swap_squares(8, rows);
#endif
}
