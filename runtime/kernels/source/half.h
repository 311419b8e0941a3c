// bfloat16: float32's upper half, rounded to the nearest, ties to even.
//
// Products sum pairs of neighbours along a sum, (even, odd), in float32: see to_half.c
// and conv_half.c. Other processors have no such instruction, and plans no such records.
#pragma once
#include "vector.h"

#if defined(__AVX512BF16__) && WIDTH == 16
#define HAS_BF16 1

// WIDTH numbers; the first n, zeros behind.
INLINE void store_half(uint16_t *p, vec v) {
    const __m256bh some = _mm512_cvtneps_pbh((__m512)v);
    memcpy(p, &some, sizeof some);
}

// WIDTH pairs of numbers, an element of each.
INLINE __m512bh pairs(vec even, vec odd) {
    ALIGNED static const uint16_t order[32] = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512bh both = _mm512_cvtne2ps_pbh((__m512)odd, (__m512)even);
    return (__m512bh)_mm512_permutexvar_epi16(_mm512_load_si512(order), (__m512i)both);
}
INLINE __m512bh load_pairs(const uint16_t *p) {
    return (__m512bh)_mm512_loadu_si512(p);
}
INLINE __m512bh all_pairs(const uint16_t *p) {
    int32_t pair;
    memcpy(&pair, p, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
}
INLINE vec add_products(vec sum, __m512bh a, __m512bh b) {
    return (vec)_mm512_dpbf16_ps((__m512)sum, a, b);
}

// (rows, wide) of float32 as pairs of bfloat16, (rows / 2, wide, 2), in the same place.
static inline void pair_rows(float *p, int64_t rows, int64_t wide) {
    uint16_t *out = (uint16_t *)p;
    for (; rows > 0; rows -= 2, p += 2 * wide)
        for (int64_t i = 0; i < wide; i += WIDTH, out += 2 * WIDTH) {
            const __m512bh v = pairs(load(p + i), load(p + wide + i));
            memcpy(out, &v, sizeof v);
        }
}
#else
#define HAS_BF16 0
#endif
