// Numbers to codes of 8 bits, and to the bytes that products read.
#pragma once
#include <float.h>

#include "bytes.h"
#include "call.h"

enum { SHIFT = 128 };  // from a code, -128 to 127, to the byte that products read

// low, high: of the steps from the zero point. within: a square, see `near`.
typedef struct {
    vec scale, inverse, zero, low, high, within;
} scheme;

INLINE vec bounded(vec v, const scheme *s) {
    return at_most(s->high, at_least(s->low, v));
}

enum { BIG = 12582912 };  // as a float, its last bit is 1: adding it rounds to even

// BIG and the nearest number of steps; a NaN stays. x / scale is x * inverse but for
// 1e-4, as there are at most 255 steps; it is divided where that decides, and where there
// are more.
INLINE vec big_steps(vec x, const scheme *s) {
    vec v = bounded(x * s->inverse, s);
    const vec off = v - ((v + (float)BIG) - (float)BIG);
    if (any_beyond(off * off, s->within)) v = bounded(x / s->scale, s);
    return v + (float)BIG;
}
// The nearest number of steps; the least for a NaN, which at_least lets its bound be.
INLINE vec steps_of(vec x, const scheme *s) {
    return at_least(big_steps(x, s) - (float)BIG, s->low);
}

// The same scheme for numbers from `least` to `most`, whose steps a negative scale swaps.
INLINE scheme within_bounds(const scheme *s, vec least, vec most) {
    const vec one = steps_of(least, s), other = steps_of(most, s);
    scheme to = *s;
    to.low = at_most(one, other), to.high = at_least(one, other);
    return to;
}

INLINE scheme scheme_from(float scale, float zero, int64_t low, int64_t high) {
    const float inverse = 1 / scale;
    const int is_plain = high < 256 && inverse >= FLT_MIN && inverse <= FLT_MAX;
    return (scheme){all(scale), all(inverse), all(zero), all((float)low - zero),
                    all((float)high - zero), all(is_plain ? .4998f * .4998f : -1)};
}
INLINE scheme scheme_of(const call *c, int64_t scale, int64_t zero, int64_t i,
                        int64_t low, int64_t high) {
    const float *scales = at(c, scale);
    const void *zeros = at(c, zero);
    const int number = !zeros       ? 0
                       : high > 255 ? ((const int16_t *)zeros)[i]
                                    : ((const int8_t *)zeros)[i];
    return scheme_from(scales[i], number, low, high);
}

// A vector's codes as bytes; `wrong` becomes NaN where one is.
INLINE bytes codes_of(vec x, const scheme *s, vec *wrong) {
    const vec steps = big_steps(x, s);
    *wrong += steps * 0;
    const ivec shift = __builtin_convertvector(s->zero, ivec) + SHIFT;
    return low_bytes((ivec)steps + shift);
}
INLINE int is_any_nan(vec v) { return any(v != v); }

// Codes without a division: of numbers from FLOOR to twice it, halves of which are the ends
// of a code's range. Between two codes are 2**15 units in the last place, 512 / 2**24 each.
enum { FLOOR = 256, UNIT_BITS = 15 };

// doubt: the units that a number may be off by.
INLINE ivec doubting(int32_t doubt) { return (ivec){0} + (doubt + (1 << (UNIT_BITS - 1))); }

// What codes of sums are found by.
typedef struct {
    vec steps, offset, low, high;
    ivec doubt;
} coding;

// The codes below other bits. nearest: the least of numbers that are small where a code may
// be another one, next to the end of its range.
INLINE ivec bits_of(vec number, const coding *by, ivec *nearest) {
    const ivec v = (ivec)at_most(by->high, at_least(by->low, number));
    *nearest = lesser(*nearest, (v + by->doubt) << (32 - UNIT_BITS));
    return v >> UNIT_BITS;
}
INLINE ivec product_bits(ivec sums, const coding *by, ivec *nearest) {
    return bits_of(__builtin_convertvector(sums, vec) * by->steps + by->offset, by,
                   nearest);
}
INLINE bytes product_codes(ivec sums, const coding *by, ivec *nearest) {
    return low_bytes(product_bits(sums, by, nearest));
}
INLINE int is_near(ivec nearest, int32_t doubt) {
    return any(nearest < (ivec){0} + (INT32_MIN + (doubt << (33 - UNIT_BITS))));
}
