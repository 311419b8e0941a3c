// Vectors of bytes as wide as those of floats, and rounding to whole numbers.
#pragma once
#include "vector.h"

typedef uint8_t bytes __attribute__((vector_size(WIDTH)));
typedef int8_t chars __attribute__((vector_size(WIDTH)));

// Halves to even, as long as the number is small: |v| < 2**22.
INLINE vec rounded(vec v) { return (v + 12582912.f) - 12582912.f; }
