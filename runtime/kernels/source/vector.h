// Vectors of the width that the processor has, and operations that C lacks for them.
//
// Compilers lower +, *, comparisons and & of these types to single instructions; a
// vector that is wider than a register would go through memory, so none is.
#pragma once
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define WIDTH 16
#include <immintrin.h>
#elif defined(__AVX2__)
#define WIDTH 8
#include <immintrin.h>
#else
#define WIDTH 4  // NEON, SSE
#endif

#define LANES 16               // channels in a block of the blocked layout
#define PARTS (LANES / WIDTH)  // vectors in a block

#define INLINE static inline __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 16")
#define ALIGNED _Alignas(64)  // a cache line: no vector lies in two

typedef float vec __attribute__((vector_size(4 * WIDTH)));
typedef int32_t ivec __attribute__((vector_size(4 * WIDTH)));
typedef float loose_vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

INLINE vec load(const float *p) { return *(const loose_vec *)p; }
INLINE void store(float *p, vec v) { *(loose_vec *)p = v; }
INLINE vec all(float f) { return f - (vec){0}; }

// The vector, as it is: compilers may else load or compute it again for each use.
INLINE vec in_register(vec v) {
#if defined(__x86_64__)
    __asm__("" : "+v"(v));
#elif defined(__aarch64__)
    __asm__("" : "+w"(v));
#endif
    return v;
}
INLINE vec choose(ivec mask, vec a, vec b) {
    return (vec)((mask & (ivec)a) | (~mask & (ivec)b));
}

// Whether one of the masks is set.
INLINE int any(ivec mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)mask) != 0;
#else
    int32_t found = 0;
    for (int i = 0; i < WIDTH; i++) found |= mask[i];
    return found != 0;
#endif
}

// Whether an element is not at most the bound; NaN is not.
INLINE int any_beyond(vec v, vec bound) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)v, (__m512)bound, _CMP_NLE_UQ) != 0;
#else
    return any(~(v <= bound));
#endif
}

// The first n elements, zeros or those of `rest` behind; and back. Sanitizers look at no masked access.
#if defined(__AVX512F__) && !defined(__SANITIZE_ADDRESS__)
INLINE __mmask16 first_of(int64_t n) { return (__mmask16)((1u << n) - 1); }
INLINE vec load_some(const float *p, int64_t n) {
    return (vec)_mm512_maskz_loadu_ps(first_of(n), p);
}
INLINE vec load_ahead_of(vec rest, const float *p, int64_t n) {
    return (vec)_mm512_mask_loadu_ps((__m512)rest, first_of(n), p);
}
INLINE vec only_first(vec v, int64_t n) {
    return (vec)_mm512_maskz_mov_ps(first_of(n), (__m512)v);
}
INLINE void store_some(float *p, vec v, int64_t n) {
    _mm512_mask_storeu_ps(p, first_of(n), (__m512)v);
}
#elif defined(__AVX2__) && !defined(__SANITIZE_ADDRESS__)
INLINE ivec first_of(int64_t n) {
    static const int32_t ones_then_zeros[2 * WIDTH] = {-1, -1, -1, -1, -1, -1, -1, -1};
    ivec mask;
    memcpy(&mask, ones_then_zeros + WIDTH - n, sizeof mask);
    return mask;
}
INLINE vec load_some(const float *p, int64_t n) {
    return (vec)_mm256_maskload_ps(p, (__m256i)first_of(n));
}
INLINE vec load_ahead_of(vec rest, const float *p, int64_t n) {
    const ivec mask = first_of(n);
    return choose(mask, (vec)_mm256_maskload_ps(p, (__m256i)mask), rest);
}
INLINE vec only_first(vec v, int64_t n) { return (vec)((ivec)v & first_of(n)); }
INLINE void store_some(float *p, vec v, int64_t n) {  // masked stores take ten times as long
    if (n >= 8) {
        store(p, v);
        return;
    }
    __m128 part = _mm256_castps256_ps128((__m256)v);
    if (n & 4) {
        _mm_storeu_ps(p, part);
        part = _mm256_extractf128_ps((__m256)v, 1), p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)p, part);
        part = _mm_movehl_ps(part, part), p += 2;
    }
    if (n & 1) _mm_store_ss(p, part);
}
#else
INLINE vec load_some(const float *p, int64_t n) {
    vec v = {0};
    memcpy(&v, p, 4 * (size_t)n);
    return v;
}
INLINE vec load_ahead_of(vec rest, const float *p, int64_t n) {
    memcpy(&rest, p, 4 * (size_t)n);
    return rest;
}
INLINE vec only_first(vec v, int64_t n) {
    vec kept = {0};
    memcpy(&kept, &v, 4 * (size_t)n);
    return kept;
}
INLINE void store_some(float *p, vec v, int64_t n) { memcpy(p, &v, 4 * (size_t)n); }
#endif
INLINE vec load_up_to(const float *p, int64_t n) {
    return n < WIDTH ? load_some(p, n) : load(p);
}
INLINE void store_up_to(float *p, vec v, int64_t n) {
    if (n < WIDTH)
        store_some(p, v, n);
    else
        store(p, v);
}

// at_least, at_most: a NaN in v stays; where the bound is NaN, they give v.
#if defined(__AVX512F__)
INLINE vec at_least(vec bound, vec v) {
    return (vec)_mm512_max_ps((__m512)bound, (__m512)v);
}
INLINE vec at_most(vec bound, vec v) {
    return (vec)_mm512_min_ps((__m512)bound, (__m512)v);
}
INLINE vec root(vec v) { return (vec)_mm512_sqrt_ps((__m512)v); }
#elif defined(__AVX2__)
INLINE vec at_least(vec bound, vec v) {
    return (vec)_mm256_max_ps((__m256)bound, (__m256)v);
}
INLINE vec at_most(vec bound, vec v) {
    return (vec)_mm256_min_ps((__m256)bound, (__m256)v);
}
INLINE vec root(vec v) { return (vec)_mm256_sqrt_ps((__m256)v); }
#else
INLINE vec at_least(vec bound, vec v) { return choose(bound > v, bound, v); }
INLINE vec at_most(vec bound, vec v) { return choose(bound < v, bound, v); }
INLINE vec root(vec v) {
    for (int i = 0; i < WIDTH; i++) v[i] = __builtin_sqrtf(v[i]);
    return v;
}
#endif

// The greater (less) of two, NaN where one is, as numpy.maximum.
#if defined(__AVX512F__)
INLINE vec greater(vec a, vec b) {
    const __mmask16 known = _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q);
    return (vec)_mm512_mask_max_ps((__m512)a, known, (__m512)a, (__m512)b);
}
INLINE vec less(vec a, vec b) {
    const __mmask16 known = _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q);
    return (vec)_mm512_mask_min_ps((__m512)a, known, (__m512)a, (__m512)b);
}
#else
INLINE vec greater(vec a, vec b) { return choose((ivec)(a != a), a, at_least(a, b)); }
INLINE vec less(vec a, vec b) { return choose((ivec)(a != a), a, at_most(a, b)); }
#endif

INLINE ivec lesser(ivec a, ivec b) {
#if defined(__AVX512F__)
    return (ivec)_mm512_min_epi32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (ivec)_mm256_min_epi32((__m256i)a, (__m256i)b);
#else
    const ivec is_less = a < b;
    return (is_less & a) | (~is_less & b);
#endif
}

// 1 / v within an ulp or so, for v that is not subnormal; and y * 2^n of whole n: the
// second form where the power is no less than 2^-126.
#if defined(__AVX512F__)
INLINE vec reciprocal(vec v) {
    const __m512 near = _mm512_rcp14_ps((__m512)v);
    const __mmask16 finite =
        _mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
    const __m512 off = _mm512_fnmadd_ps((__m512)v, near, _mm512_set1_ps(1));
    return (vec)_mm512_mask_fmadd_ps(near, finite, off, near);  // one step of Newton's
}
INLINE vec times_power(vec y, vec n) {
    return (vec)_mm512_scalef_ps((__m512)y, (__m512)n);
}
INLINE vec times_normal_power(vec y, vec n) { return times_power(y, n); }
#else
INLINE vec reciprocal(vec v) { return 1.f / v; }
INLINE vec times_power(vec y, vec n) {
    ivec whole = __builtin_convertvector(n, ivec);
    ivec half = whole >> 1;  // in two steps, as one alone leaves the range
    return y * (vec)((half + 127) << 23) * (vec)((whole - half + 127) << 23);
}
INLINE vec times_normal_power(vec y, vec n) {
    return y * (vec)((__builtin_convertvector(n, ivec) + 127) << 23);
}
#endif

// Of a vector's elements, by halves.
#if defined(__AVX512F__)
INLINE float sum_of(vec v) { return _mm512_reduce_add_ps((__m512)v); }
INLINE float greatest_of(vec v) {
    if (any((ivec)(v != v))) return __builtin_nanf("");
    return _mm512_reduce_max_ps((__m512)v);
}
#elif defined(__AVX2__)
INLINE float sum_of(vec v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128((__m256)v),
                          _mm256_extractf128_ps((__m256)v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
INLINE float greatest_of(vec v) {
    if (any((ivec)(v != v))) return __builtin_nanf("");
    __m128 s = _mm_max_ps(_mm256_castps256_ps128((__m256)v),
                          _mm256_extractf128_ps((__m256)v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
#else
INLINE float sum_of(vec v) {
    float part[WIDTH];
    memcpy(part, &v, sizeof part);
    UNROLLED for (int n = WIDTH / 2; n; n /= 2)
        UNROLLED for (int i = 0; i < n; i++) part[i] += part[i + n];
    return part[0];
}
INLINE float greatest_of(vec v) {
    float most = v[0];
    UNROLLED for (int i = 1; i < WIDTH; i++)
        most = most != most || most > v[i] ? most : v[i];
    return most;
}
#endif
