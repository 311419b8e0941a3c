// Derivatives of activations, which their gradients multiply by, and a loss.
#pragma once
#include "functions.h"

// The normal CDF at x, and x times the density there.
INLINE vec gelu_slope(vec x) {
    vec share = 0.5f + 0.5f * error_function(x * 0.70710678f);
    return share + x * 0.39894228f * exponential(x * x * -0.5f);
}

INLINE vec gelu_tanh_slope(vec x) {
    vec s = x * x;
    vec t = hyperbolic_tangent(x * (0.7978845608f + 0.0356774081f * s));
    vec inner = 0.3989422804f + 0.0535161122f * s;
    return 0.5f + 0.5f * t + x * (1.f - t * t) * inner;
}

INLINE vec swish_slope(vec x, float alpha) {
    vec s = sigmoid(x * alpha);
    return s + alpha * x * s * (1.f - s);
}

INLINE vec hard_swish_slope(vec x) {
    vec inside = x * (1.f / 3) + 0.5f;
    vec beyond = choose((ivec)(x != x), x, choose((ivec)(x > 0.f), all(1), all(0)));
    return choose((ivec)((x > -3.f) & (x < 3.f)), inside, beyond);
}

INLINE vec elu_slope(vec x, float alpha) {
    return choose((ivec)(x > 0.f), all(1), alpha * exponential(x));
}

// d * d / 2 within the bound, and from there on along the tangent.
INLINE vec huber(vec d, float bound) {
    const vec size = (vec)((ivec)d & 0x7fffffff);
    return choose((ivec)(size <= bound), 0.5f * d * d, bound * (size - 0.5f * bound));
}
