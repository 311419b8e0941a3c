// One instruction of a fused element-wise program, on tiles that fit in the L1 cache.
#pragma once
#include <math.h>

#include "activation.h"
#include "call.h"
#include "slopes.h"

typedef struct {
    int32_t op, out, a, b, c, unused;
    double low, high;
} instruction;

enum { AT_ONCE = 4 };

// Vectorized loop, unrolled AT_ONCE times: all loads of an iteration precede its stores.
#define EVERY(expression)                                                  \
    {                                                                      \
        int64_t i = 0;                                                     \
        for (; i + AT_ONCE * WIDTH <= n; i += AT_ONCE * WIDTH) {           \
            vec made[AT_ONCE];                                             \
            UNROLLED for (int j = 0; j < AT_ONCE; j++) {                   \
                OF_PLACE(i + j * WIDTH)                                    \
                made[j] = (expression);                                    \
            }                                                              \
            UNROLLED for (int j = 0; j < AT_ONCE; j++)                     \
                store(out + i + j * WIDTH, made[j]);                       \
        }                                                                  \
        for (; i < n; i += WIDTH) {                                        \
            OF_PLACE(i)                                                    \
            store(out + i, (expression));                                  \
        }                                                                  \
    }                                                                      \
    break;
// Vectorized loop, not unrolled: for expressions of high register pressure.
#define ONE_BY_ONE(expression)               \
    for (int64_t i = 0; i < n; i += WIDTH) { \
        OF_PLACE(i)                          \
        store(out + i, (expression));        \
    }                                        \
    break;
#define OF_PLACE(p)                                                    \
    vec x = load(a + ((p)&along[0])), y = load(b + ((p)&along[1])),    \
        z = load(c + ((p)&along[2]));                                  \
    (void)x, (void)y, (void)z;
#define TRUTH(condition) EVERY(choose((ivec)(condition), all(1), all(0)))
#define EACH_ACTIVATED(act)                                                        \
    for (int64_t i = 0; i < n;) {                                                  \
        if (i + ABREAST * WIDTH <= n) {                                            \
            vec x[ABREAST];                                                        \
            UNROLLED for (int j = 0; j < ABREAST; j++) x[j] = load(a + i + j * WIDTH); \
            activate_together(ABREAST, x, act, low, high);                         \
            UNROLLED for (int j = 0; j < ABREAST; j++) store(out + i + j * WIDTH, x[j]); \
            i += ABREAST * WIDTH;                                                  \
        } else {                                                                   \
            store(out + i, activated(load(a + i), act, low, high));                \
            i += WIDTH;                                                            \
        }                                                                          \
    }                                                                              \
    break;
#define SINGLY(expression)                                   \
    for (int64_t i = 0; i < n; i++) out[i] = (expression);   \
    break;

// Applies `s` to n elements. along: an index mask each for a, b and c: -1 for a tile, 0 for a
// splat constant, whose first vector is read again and again: loads from a whole tile would
// wait for stores at the same 4 KiB offset (false store-to-load dependencies).
static void step(const instruction *s, const float *a, const float *b, const float *c,
                 const int64_t *along, float *out, int64_t n) {
    const float low = (float)s->low, high = (float)s->high;
    switch (s->op) {
    case DO_ADD: EVERY(x + y)
    case DO_SUB: EVERY(x - y)
    case DO_MUL: EVERY(x * y)
    case DO_DIV: EVERY(x / y)
    case DO_MAX: EVERY(greater(x, y))
    case DO_MIN: EVERY(less(x, y))
    case DO_NEG: EVERY(-x)
    case DO_ABS: EVERY((vec)((ivec)x & 0x7fffffff))
    case DO_EXP: ONE_BY_ONE(exponential(x))
    case DO_SQRT: EVERY(root(x))
    case DO_ERF: ONE_BY_ONE(error_function(x))
    case DO_SQUARE: EVERY(x * x)
    case DO_RECIPROCAL: EVERY(1.f / x)
    case DO_LOG: SINGLY(logf(a[i]))
    case DO_LOG1P: SINGLY(log1pf(a[i]))
    case DO_EXPM1: SINGLY(expm1f(a[i]))
    case DO_FLOOR: SINGLY(floorf(a[i]))
    case DO_CEIL: SINGLY(ceilf(a[i]))
    case DO_RINT: SINGLY(rintf(a[i]))
    case DO_TRUNC: SINGLY(truncf(a[i]))
    case DO_SIN: SINGLY(sinf(a[i]))
    case DO_COS: SINGLY(cosf(a[i]))
    case DO_POW: SINGLY(powf(a[i], b[i]))
    case DO_GREATER: TRUTH(x > y)
    case DO_AT_LEAST: TRUTH(x >= y)
    case DO_LESS: TRUTH(x < y)
    case DO_AT_MOST: TRUTH(x <= y)
    case DO_EQUAL: TRUTH(x == y)
    case DO_UNEQUAL: TRUTH(x != y)
    case DO_AND: TRUTH((x != 0.f) & (y != 0.f))
    case DO_OR: TRUTH((x != 0.f) | (y != 0.f))
    case DO_NOT: TRUTH(x == 0.f)
    case DO_WHERE: EVERY(choose((ivec)(x != 0.f), y, z))
    case DO_LEAK: EVERY(choose((ivec)(x > 0.f), y, y * z))
    case DO_HUBER: EVERY(huber(x - y, high))
    case DO_HUBER_SLOPE: EVERY(z * less(greater(x - y, all(-high)), all(high)))
    // Gradients: y times the derivative at x, the activation's input, or its output where
    // the derivative is a function of that (sigmoid, tanh).
    case DO_GELU_SLOPE: ONE_BY_ONE(y * gelu_slope(x))
    case DO_GELU_TANH_SLOPE: ONE_BY_ONE(y * gelu_tanh_slope(x))
    case DO_SWISH_SLOPE: ONE_BY_ONE(y * swish_slope(x, low))
    case DO_HARD_SWISH_SLOPE: ONE_BY_ONE(y * hard_swish_slope(x))
    case DO_SIGMOID_SLOPE: EVERY(y * (x * (1.f - x)))
    case DO_TANH_SLOPE: EVERY(y * (1.f - x * x))
    case DO_LEAKY_SLOPE: EVERY(choose((ivec)(x > 0.f), y, y * low))
    case DO_ELU_SLOPE: ONE_BY_ONE(y * elu_slope(x, low))
    case DO_SOFTPLUS_SLOPE: ONE_BY_ONE(y * sigmoid(x))
    case DO_RELU: EACH_ACTIVATED(ACT_RELU)
    case DO_CLIP: EACH_ACTIVATED(ACT_CLIP)
    case DO_GELU: EACH_ACTIVATED(ACT_GELU)
    case DO_GELU_TANH: EACH_ACTIVATED(ACT_GELU_TANH)
    case DO_SIGMOID: EACH_ACTIVATED(ACT_SIGMOID)
    case DO_TANH: EACH_ACTIVATED(ACT_TANH)
    case DO_SWISH: EACH_ACTIVATED(ACT_SWISH)
    case DO_HARD_SWISH: EACH_ACTIVATED(ACT_HARD_SWISH)
    case DO_RAMP: EACH_ACTIVATED(ACT_RAMP)
    case DO_LEAKY: EACH_ACTIVATED(ACT_LEAKY)
    case DO_ELU: EACH_ACTIVATED(ACT_ELU)
    case DO_SOFTPLUS: EACH_ACTIVATED(ACT_SOFTPLUS)
    default: memcpy(out, a, 4 * (size_t)n);
    }
}
