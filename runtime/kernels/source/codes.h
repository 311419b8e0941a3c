// Numbers to codes of 8 bits, and to the bytes that products read.
#pragma once
#include "bytes.h"
#include "call.h"

enum { SHIFT = 128 };  // from a code, -128 to 127, to the byte that products read

typedef struct {
    vec scale, zero, low, high;
} scheme;

// The nearest integer; a NaN stays.
INLINE vec level_of(vec x, const scheme *s) {
    vec v = at_most(all(4194303.f), at_least(all(-4194303.f), x / s->scale));
    return at_most(s->high, at_least(s->low, rounded(v) + s->zero));
}

INLINE scheme scheme_of(const call *c, int64_t scale, int64_t zero, int64_t i,
                        int64_t low, int64_t high) {
    const float *scales = at(c, scale);
    const int8_t *zeros = at(c, zero);
    return (scheme){all(scales[i]), all(zeros ? zeros[i] : 0), all((float)low),
                    all((float)high)};
}

// A vector's codes as bytes; `wrong` collects NaNs.
INLINE bytes codes_of(vec x, const scheme *s, ivec *wrong) {
    const vec level = level_of(x, s);
    *wrong |= level != level;
    return __builtin_convertvector(__builtin_convertvector(level, ivec) + SHIFT, bytes);
}
