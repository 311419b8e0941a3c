// What the steps of optimizers share: parts of vectors, and how gradients are clipped.
#pragma once
#include "call.h"

INLINE vec some_of(const float *p, int64_t n) {
    return n == WIDTH ? load(p) : load_some(p, n);
}
INLINE void put(float *p, vec v, int64_t n) {
    if (n == WIDTH)
        store(p, v);
    else
        store_some(p, v, n);
}

// How gradients are clipped: each element times `scale`, within `bound`.
typedef struct {
    float scale, bound;
} clipping;

INLINE clipping clipping_of(const float *factor, double bound, int64_t maximize) {
    const float scale = factor ? *factor : 1;
    return (clipping){maximize ? -scale : scale, (float)bound};
}
INLINE vec within_limits(const clipping *by, vec g) {
    return at_least(all(-by->bound), at_most(all(by->bound), g * by->scale));
}
