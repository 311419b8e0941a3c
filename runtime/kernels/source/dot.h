// Sums of products of bytes: four to each 32-bit lane, exact.
#pragma once
#include "vector.h"

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define HAS_DOT 1  // in an instruction
#else
#define HAS_DOT 0
#endif

// acc + the sum of four products of unsigned bytes of x and signed ones of w, by lane.
#if WIDTH == 16 && defined(__AVX512VNNI__)
INLINE ivec dot(ivec acc, ivec x, ivec w) {
    return (ivec)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)x, (__m512i)w);
}
#elif WIDTH == 8 && defined(__AVXVNNI__)
INLINE ivec dot(ivec acc, ivec x, ivec w) {
    return (ivec)_mm256_dpbusd_avx_epi32((__m256i)acc, (__m256i)x, (__m256i)w);
}
#elif WIDTH == 16 && defined(__AVX512BW__)
INLINE ivec dot(ivec acc, ivec x, ivec w) {  // even and odd bytes, as 16 bits each
    const __m512i low = _mm512_set1_epi16(255), a = (__m512i)x, b = (__m512i)w;
    __m512i even = _mm512_madd_epi16(_mm512_and_si512(a, low),
                                     _mm512_srai_epi16(_mm512_slli_epi16(b, 8), 8));
    __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(a, 8), _mm512_srai_epi16(b, 8));
    return acc + (ivec)even + (ivec)odd;
}
#elif WIDTH == 8
INLINE ivec dot(ivec acc, ivec x, ivec w) {
    const __m256i low = _mm256_set1_epi16(255), a = (__m256i)x, b = (__m256i)w;
    __m256i even = _mm256_madd_epi16(_mm256_and_si256(a, low),
                                     _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
    __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
    return acc + (ivec)even + (ivec)odd;
}
#else
INLINE ivec dot(ivec acc, ivec x, ivec w) {
    UNROLLED for (int i = 0; i < 32; i += 8)
        acc += (x >> i & 255) * (w << (24 - i) >> 24);
    return acc;
}
#endif
