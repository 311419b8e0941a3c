// Functions of vectors, each with the error that tests hold it to (in units of the last
// place, of the exact value). NaN and infinities go through as in NumPy.
#pragma once
#include "vector.h"

// Several vectors at a time, step by step: what one waits for, others fill. Most functions
// are chains of some thirty operations, of which a processor looks ahead at a hundred.
enum { ABREAST = 4 };
#define EACH UNROLLED for (int i = 0; i < n; i++)

// e^x is x * 2^turns, for whole numbers turns.
INLINE void parts_of_exponentials(const int n, vec *x, vec *turns) {
    vec y[ABREAST];
    EACH turns[i] = (x[i] * 1.44269504f + 12582912.f) - 12582912.f;
    EACH x[i] = turns[i] * 2.12194440e-4f + (x[i] - turns[i] * 0.693359375f);
    EACH y[i] = x[i] * 1.9875691500E-4f + 1.3981999507E-3f;
    EACH y[i] = y[i] * x[i] + 8.3334519073E-3f;
    EACH y[i] = y[i] * x[i] + 4.1665795894E-2f;
    EACH y[i] = y[i] * x[i] + 1.6666665459E-1f;
    EACH y[i] = y[i] * x[i] + 5.0000001201E-1f;
    EACH x[i] = y[i] * (x[i] * x[i]) + (x[i] + 1.f);
}

// e^x: 2 ulp; subnormal results keep their leading bits.
INLINE vec exponential(vec x) {
    vec turns;
    x = at_most(all(89), at_least(all(-104), x));
    parts_of_exponentials(1, &x, &turns);
    return times_power(x, turns);
}

// e^x where only its sum with 1 matters: no less than e^-87, and infinite from 89 on.
INLINE void exponentials_for_sum(const int n, vec *x) {
    vec turns[ABREAST];
    EACH x[i] = at_most(all(89), at_least(all(-87), x[i]));
    parts_of_exponentials(n, x, turns);
    EACH x[i] = times_normal_power(x[i], turns[i]);
}

INLINE vec exponential_for_sum(vec x) {
    exponentials_for_sum(1, &x);
    return x;
}

INLINE void sigmoids(const int n, vec *x) {
    EACH x[i] = -x[i];
    exponentials_for_sum(n, x);
    EACH x[i] = reciprocal(1.f + x[i]);
}

INLINE vec sigmoid(vec x) {
    sigmoids(1, &x);
    return x;
}

// tanh x of x and e^2x: 3 ulp; a polynomial near 0, where 1 - 2 / (e^2x + 1) cancels.
INLINE void tangents_of_exponentials(const int n, vec *x, const vec *e) {
    vec s[ABREAST], p[ABREAST], far[ABREAST];
    EACH far[i] = 1.f - 2.f * reciprocal(e[i] + 1.f);
    EACH s[i] = x[i] * x[i];
    EACH p[i] = s[i] * -5.70498872745E-3f + 2.06390887954E-2f;
    EACH p[i] = p[i] * s[i] - 5.37397155531E-2f;
    EACH p[i] = p[i] * s[i] + 1.33314422036E-1f;
    EACH p[i] = p[i] * s[i] - 3.33332819422E-1f;
    EACH p[i] = p[i] * s[i] * x[i] + x[i];
    EACH x[i] = choose((ivec)(s[i] < 0.390625f), p[i], far[i]);
}

INLINE void hyperbolic_tangents(const int n, vec *x) {
    vec e[ABREAST];
    EACH e[i] = x[i] + x[i];
    exponentials_for_sum(n, e);
    tangents_of_exponentials(n, x, e);
}

INLINE vec hyperbolic_tangent(vec x) {
    hyperbolic_tangents(1, &x);
    return x;
}

// erf x: 4 ulp; a quotient of polynomials, as Eigen's.
INLINE void error_functions(const int n, vec *x) {
    vec s[ABREAST], p[ABREAST], q[ABREAST];
    EACH x[i] = at_most(all(4), at_least(all(-4), x[i]));
    EACH s[i] = x[i] * x[i];
    EACH p[i] = s[i] * -2.72614225801306e-10f + 2.77068142495902e-08f;
    EACH q[i] = s[i] * -1.45660718464996e-05f - 2.13374055278905e-04f;
    EACH p[i] = p[i] * s[i] - 2.10102402082508e-06f;
    EACH q[i] = q[i] * s[i] - 1.68282697438203e-03f;
    EACH p[i] = p[i] * s[i] - 5.69250639462346e-05f;
    EACH q[i] = q[i] * s[i] - 7.37332916720468e-03f;
    EACH p[i] = p[i] * s[i] - 7.34990630326855e-04f;
    EACH q[i] = q[i] * s[i] - 1.42647390514189e-02f;
    EACH p[i] = p[i] * s[i] - 2.95459980854025e-03f;
    EACH p[i] = p[i] * s[i] - 1.60960333262415e-02f;
    EACH x[i] = x[i] * p[i] * reciprocal(q[i]);
    EACH x[i] = at_most(all(1), at_least(all(-1), x[i]));
}

INLINE vec error_function(vec x) {
    error_functions(1, &x);
    return x;
}

// alpha * (e^x - 1) below 0, without its cancellation: e^x - 1 = 2 t / (1 - t) with
// t = tanh(x / 2).
INLINE vec exponential_unit(vec x, float alpha) {
    vec t = hyperbolic_tangent(x * 0.5f);
    return choose((ivec)(x > 0.f), x, alpha * (t + t) / (1.f - t));
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), that one by the series of atanh.
INLINE vec softplus(vec x) {
    vec e = exponential((vec)((ivec)x | INT32_MIN));
    vec s = e / (e + 2.f), z = s * s;
    vec p = all(1.f / 15);
    p = p * z + 1.f / 13;
    p = p * z + 1.f / 11;
    p = p * z + 1.f / 9;
    p = p * z + 1.f / 7;
    p = p * z + 1.f / 5;
    p = p * z + 1.f / 3;
    p = p * z + 1.f;
    return at_least(all(0), x) + 2.f * s * p;
}

// x * P(normal <= x), the exact GELU.
INLINE void gaussian_units(const int n, vec *x) {
    vec y[ABREAST];
    EACH y[i] = x[i] * 0.70710678f;
    error_functions(n, y);
    EACH y[i] = x[i] * 0.5f * (y[i] + 1.f);
    EACH x[i] = choose((ivec)(x[i] < -6.f), x[i] * 0.f - 0.f, y[i]);
}

INLINE vec gaussian_unit(vec x) {
    gaussian_units(1, &x);
    return x;
}

INLINE vec gaussian_unit_tanh(vec x) {
    vec inner = 0.7978845608f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.f + hyperbolic_tangent(inner));
}

INLINE vec clipped(vec x, float low, float high) {
    return at_most(all(high), at_least(all(low), x));
}
