// What the steps of optimizers share: how gradients are clipped.
#pragma once
#include "call.h"

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
