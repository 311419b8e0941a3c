// Ranges of numbers, and the scales and zero points that cover them.
#pragma once
#include <float.h>
#include <math.h>

#include "rows.h"

// The range of n numbers and 0; `none` becomes NaN where one of them is not finite.
INLINE void widen_range(const float *x, int64_t n, vec *low, vec *high, vec *none) {
    OVER(n,
         vec v = load(x + i); *low = at_most(v, *low); *high = at_least(v, *high);
         *none += v - v,
         vec v = load_some(x + i, rest); *low = at_most(v, *low);
         *high = at_least(v, *high); *none += v - v)
}

INLINE float usable_scale(float scale) {
    return !(scale > 0) ? 1 : scale < FLT_MIN ? FLT_MIN : scale;
}

// The code of 0 where codes from `low` to `high` cover numbers from `least` on.
INLINE int8_t zero_of(float least, float scale, int64_t low, int64_t high) {
    const float at_zero = rintf(-least / scale) + (float)low;
    return (int8_t)fminf(fmaxf(at_zero, (float)low), (float)high);
}
