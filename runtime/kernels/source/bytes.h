// Vectors of bytes as wide as those of floats, and rounding to whole numbers.
#pragma once
#include "vector.h"

typedef uint8_t bytes __attribute__((vector_size(WIDTH)));
typedef int8_t chars __attribute__((vector_size(WIDTH)));

// Halves to even, as long as the number is small: |v| < 2**22.
INLINE vec rounded(vec v) { return (v + 12582912.f) - 12582912.f; }

// The lowest byte of each integer.
INLINE bytes low_bytes(ivec v) {
#if defined(__AVX512F__)
    return (bytes)_mm512_cvtepi32_epi8((__m512i)v);
#else
    return __builtin_convertvector(v & 255, bytes);
#endif
}

// A product that is rounded before anything is added to it.
INLINE vec rounded_product(vec a, vec b) { return in_register(a * b); }

// Signed bytes as floats, and unsigned ones as integers.
#if defined(__AVX512F__)
INLINE vec from_chars(const int8_t *p) {
    const __m128i v = _mm_loadu_si128((const __m128i *)p);
    return (vec)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(v));
}
INLINE ivec widened(const uint8_t *p) {
    return (ivec)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
#elif defined(__AVX2__)
INLINE vec from_chars(const int8_t *p) {
    const __m128i v = _mm_loadl_epi64((const __m128i *)p);
    return (vec)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v));
}
INLINE ivec widened(const uint8_t *p) {
    return (ivec)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
#else
INLINE vec from_chars(const int8_t *p) {
    chars v;
    memcpy(&v, p, WIDTH);
    return __builtin_convertvector(v, vec);
}
INLINE ivec widened(const uint8_t *p) {
    bytes v;
    memcpy(&v, p, WIDTH);
    return __builtin_convertvector(v, ivec);
}
#endif
