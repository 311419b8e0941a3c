// What products and convolutions apply to a result before it is stored.
#pragma once
#include "functions.h"
#include "records.h"

INLINE vec activated(vec x, int64_t act, float low, float high) {
    switch (act) {
    case ACT_RELU: return at_least(all(0), x);
    case ACT_CLIP: return clipped(x, low, high);
    case ACT_GELU: return gaussian_unit(x);
    case ACT_GELU_TANH: return gaussian_unit_tanh(x);
    case ACT_SIGMOID: return sigmoid(x);
    case ACT_TANH: return hyperbolic_tangent(x);
    case ACT_SWISH: return x * sigmoid(x * low);
    case ACT_HARD_SWISH: return x * clipped(x + 3.f, 0, 6) * (1.f / 6.f);
    case ACT_RAMP: return clipped(x * low + high, 0, 1);
    case ACT_LEAKY: return choose((ivec)(x < 0.f), x * low, x);
    default: return x;
    }
}
