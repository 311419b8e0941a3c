// Vectors of hidden units, up to the last one of a layer.
#pragma once
#include "vector.h"

// left: how many units there are from p on; none where it is not above 0.
INLINE vec units_at(const float *p, int64_t left) {
    return left >= WIDTH ? load(p) : load_some(p, left > 0 ? left : 0);
}
INLINE void put_units(float *p, vec v, int64_t left) {
    if (left >= WIDTH)
        store(p, v);
    else if (left > 0)
        store_some(p, v, left);
}
