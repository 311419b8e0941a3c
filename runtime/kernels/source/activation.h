// Activations that products and convolutions apply to results before storing them.
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
    case ACT_HARD_SWISH: return x * (clipped(x + 3.f, 0, 6) * (1.f / 6.f));
    case ACT_RAMP: return clipped(x * low + high, 0, 1);
    case ACT_LEAKY: return choose((ivec)(x < 0.f), x * low, x);
    case ACT_ELU: return exponential_unit(x, low);
    case ACT_SOFTPLUS: return softplus(x);
    default: return x;
    }
}

// Whether accumulators are given it in registers, before they are stored.
INLINE int is_cheap(int64_t act) { return act <= ACT_CLIP || act == ACT_HARD_SWISH; }

// The same for `rows` of n accumulators, `step` apart, if it is cheap: chosen once.
INLINE void activate_cheaply(const int rows, const int n, const int step, vec *acc,
                             int64_t act, double low, double high) {
#define TO_EACH(value)                                                      \
    UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int i = 0; i < n; i++) { \
        const vec x = acc[r * step + i];                                    \
        acc[r * step + i] = value;                                          \
    }
    if (act == ACT_RELU) {
        TO_EACH(at_least(all(0), x))
    } else if (act == ACT_CLIP) {
        const vec least = all((float)low), most = all((float)high);
        TO_EACH(at_most(most, at_least(least, x)))
    } else if (act == ACT_HARD_SWISH) {
        TO_EACH(activated(x, ACT_HARD_SWISH, 0, 0))
    }
#undef TO_EACH
}

// The same for n vectors.
INLINE void activate_together(const int n, vec *x, const int act, float low, float high) {
    if (act == ACT_SWISH) {
        vec gate[ABREAST];
        EACH gate[i] = x[i] * low;
        sigmoids(n, gate);
        EACH x[i] *= gate[i];
    } else if (act == ACT_SIGMOID) {
        sigmoids(n, x);
    } else if (act == ACT_GELU) {
        gaussian_units(n, x);
    } else {
        EACH x[i] = activated(x[i], act, low, high);
    }
}

INLINE void activate_at(const int n, float *const *p, const int act, float low,
                        float high) {
    vec x[ABREAST];
    EACH x[i] = load(p[i]);
    activate_together(n, x, act, low, high);
    EACH store(p[i], x[i]);
}

// The same for `rows` times `blocks` blocks of LANES, where `to` says the rows begin, or
// one after the other. The choice is made once, as it costs as much as a function.
INLINE void activate_as(const int act, float *out, const int32_t *to, int64_t rows,
                        int64_t blocks, int64_t step, float low, float high) {
    float *p[ABREAST];
    int count = 0;
    for (int64_t j = 0; j < blocks; j++)
        for (int64_t i = 0; i < rows; i++) {
            float *row = out + (to ? to[i] : i * LANES) + j * step;
            UNROLLED for (int v = 0; v < PARTS; v++) {
                p[count++] = row + v * WIDTH;
                if (count < ABREAST) continue;
                activate_at(ABREAST, p, act, low, high);
                count = 0;
            }
        }
    for (int i = 0; i < count; i++) activate_at(1, p + i, act, low, high);
}

static inline void activate(int64_t act, float *out, const int32_t *to, int64_t rows,
                            int64_t blocks, int64_t step, float low, float high) {
#define AS(name) \
    case name: activate_as(name, out, to, rows, blocks, step, low, high); break;
    switch (act) {
        AS(ACT_RELU) AS(ACT_CLIP) AS(ACT_GELU) AS(ACT_GELU_TANH) AS(ACT_SIGMOID)
        AS(ACT_TANH) AS(ACT_SWISH) AS(ACT_HARD_SWISH) AS(ACT_RAMP) AS(ACT_LEAKY)
        AS(ACT_ELU) AS(ACT_SOFTPLUS)
    }
#undef AS
}
