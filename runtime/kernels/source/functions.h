// Functions of vectors, each with the error that tests hold it to (in units of the last
// place, of the exact value). NaN and infinities go through as in NumPy.
#pragma once
#include "vector.h"

// e^x is y * 2^n.
INLINE vec parts_of_exponential(vec x, ivec *n) {
    vec turns = (x * 1.44269504f + 12582912.f) - 12582912.f;
    *n = __builtin_convertvector(turns, ivec);
    vec r = turns * 2.12194440e-4f + (x - turns * 0.693359375f);
    vec y = all(1.9875691500E-4f);
    y = y * r + 1.3981999507E-3f;
    y = y * r + 8.3334519073E-3f;
    y = y * r + 4.1665795894E-2f;
    y = y * r + 1.6666665459E-1f;
    y = y * r + 5.0000001201E-1f;
    return y * (r * r) + (r + 1.f);
}

// e^x: 2 ulp; subnormal results keep their leading bits.
INLINE vec exponential(vec x) {
    ivec n;
    vec y = parts_of_exponential(at_most(all(89), at_least(all(-104), x)), &n);
    ivec half = n >> 1;  // in two steps, as one alone leaves the range
    return y * (vec)((half + 127) << 23) * (vec)((n - half + 127) << 23);
}

// e^x where only its sum with 1 matters: no less than e^-87, and infinite from 88.4 on.
INLINE vec exponential_for_sum(vec x) {
    ivec n;
    vec y = parts_of_exponential(at_most(all(89), at_least(all(-87), x)), &n);
    return y * (vec)((n + 127) << 23);
}

INLINE vec sigmoid(vec x) { return 1.f / (1.f + exponential_for_sum(-x)); }

// tanh x: 3 ulp; a polynomial near 0, where 1 - 2 / (e^2x + 1) cancels.
INLINE vec hyperbolic_tangent(vec x) {
    vec s = x * x;
    vec p = all(-5.70498872745E-3f);
    p = p * s + 2.06390887954E-2f;
    p = p * s - 5.37397155531E-2f;
    p = p * s + 1.33314422036E-1f;
    p = p * s - 3.33332819422E-1f;
    vec near = p * s * x + x;
    vec far = 1.f - 2.f / (exponential_for_sum(x + x) + 1.f);
    return choose((ivec)(s < 0.390625f), near, far);
}

// erf x: 4 ulp; a quotient of polynomials, as Eigen's.
INLINE vec error_function(vec x) {
    x = at_most(all(4), at_least(all(-4), x));
    vec s = x * x;
    vec p = all(-2.72614225801306e-10f);
    p = p * s + 2.77068142495902e-08f;
    p = p * s - 2.10102402082508e-06f;
    p = p * s - 5.69250639462346e-05f;
    p = p * s - 7.34990630326855e-04f;
    p = p * s - 2.95459980854025e-03f;
    p = p * s - 1.60960333262415e-02f;
    vec q = all(-1.45660718464996e-05f);
    q = q * s - 2.13374055278905e-04f;
    q = q * s - 1.68282697438203e-03f;
    q = q * s - 7.37332916720468e-03f;
    q = q * s - 1.42647390514189e-02f;
    return at_most(all(1), at_least(all(-1), x * p / q));
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
INLINE vec gaussian_unit(vec x) {
    vec y = x * 0.5f * (error_function(x * 0.70710678f) + 1.f);
    return choose((ivec)(x < -6.f), x * 0.f - 0.f, y);
}

INLINE vec gaussian_unit_tanh(vec x) {
    vec inner = 0.7978845608f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.f + hyperbolic_tangent(inner));
}

INLINE vec clipped(vec x, float low, float high) {
    return at_most(all(high), at_least(all(low), x));
}
