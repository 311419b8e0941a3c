// The exponentials of a row, from which softmax and cross entropy are made.
#pragma once
#include "functions.h"
#include "rows.h"

// e^(x - shift) of a row, and its sum.
static inline float powers(const float *x, float *y, int64_t n, float shift) {
    vec s = {0};
    OVER(n,
         vec e = exponential(load(x + i) - shift); s += e; store(y + i, e),
         vec e = exponential(load_some(x + i, rest) - shift);
         s += only_first(e, rest); store_some(y + i, e, rest))
    return sum_of(s);
}

static inline void times(float *y, int64_t n, float factor) {
    OVER(n, store(y + i, load(y + i) * factor),
         store_some(y + i, load_some(y + i, rest) * factor, rest))
}
