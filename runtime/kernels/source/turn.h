// Squares of as many vectors as a vector has elements, turned: rows become columns.
#pragma once
#include "vector.h"

// Swap the two off-diagonal squares of `half` elements in every square of twice as many.
INLINE void swap_squares(const int half, vec *rows) {
#if !defined(__clang__)
    ivec one, two;
    UNROLLED for (int i = 0; i < WIDTH; i++) {
        one[i] = i & half ? WIDTH + i - half : i;
        two[i] = i & half ? WIDTH + i : i + half;
    }
#endif
    UNROLLED for (int i = 0; i < WIDTH; i++) {
        if (i & half) continue;
        const vec a = rows[i], b = rows[i + half];
#if defined(__clang__)  // which has no __builtin_shuffle, and sees one in this
        vec p = a, q = b;
        UNROLLED for (int k = 0; k < WIDTH; k++) {
            if (k & half)
                p[k] = b[k - half];
            else
                q[k] = a[k + half];
        }
        rows[i] = p;
        rows[i + half] = q;
#else
        rows[i] = __builtin_shuffle(a, b, one);
        rows[i + half] = __builtin_shuffle(a, b, two);
#endif
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
