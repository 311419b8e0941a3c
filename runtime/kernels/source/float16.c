// Values of float16 as single precision, back, and single precision as float16 has it:
// to the nearest, ties to even, infinity beyond the largest.
#include "call.h"

#if defined(__AVX512F__)
INLINE vec widened(const uint16_t *p) {
    __m256i some;
    memcpy(&some, p, sizeof some);
    return (vec)_mm512_cvtph_ps(some);
}
INLINE void store_narrowed(uint16_t *p, vec v) {
    const __m256i some = _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT);
    memcpy(p, &some, sizeof some);
}
#elif defined(__AVX2__) && defined(__F16C__)
INLINE vec widened(const uint16_t *p) {
    __m128i some;
    memcpy(&some, p, sizeof some);
    return (vec)_mm256_cvtph_ps(some);
}
INLINE void store_narrowed(uint16_t *p, vec v) {
    const __m128i some = _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
    memcpy(p, &some, sizeof some);
}
#elif defined(__aarch64__)
INLINE vec widened(const uint16_t *p) {
    __fp16 some[WIDTH];
    memcpy(some, p, sizeof some);
    vec v;
    for (int i = 0; i < WIDTH; i++) v[i] = (float)some[i];
    return v;
}
INLINE void store_narrowed(uint16_t *p, vec v) {
    __fp16 some[WIDTH];
    for (int i = 0; i < WIDTH; i++) some[i] = (__fp16)v[i];
    memcpy(p, some, sizeof some);
}
#else
// By powers of two: 2^112 moves the exponent, 2^-24 is the least step.
static float wide_number(uint16_t half) {
    const uint32_t bits = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)half >> 15;
    float value;
    memcpy(&value, &bits, sizeof value);
    value *= 0x1p112f;
    uint32_t made;
    memcpy(&made, &value, sizeof made);
    if ((half & 0x7c00) == 0x7c00) made |= 0x7f800000u;
    made |= sign << 31;
    memcpy(&value, &made, sizeof value);
    return value;
}
static uint16_t narrow_number(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return sign | 0x7e00;
    if (bits >= 0x477ff000) return sign | 0x7c00;  // 65520 and more
    if (bits >= 0x38800000)
        return sign | (uint16_t)((bits + 0xfff + (bits >> 13 & 1) - 0x38000000) >> 13);
    float small;
    memcpy(&small, &bits, sizeof small);
    small += 0.5f;  // whose last bit is 2^-24: the addition rounds
    memcpy(&bits, &small, sizeof bits);
    return sign | (uint16_t)(bits - 0x3f000000);
}
INLINE vec widened(const uint16_t *p) {
    vec v;
    for (int i = 0; i < WIDTH; i++) v[i] = wide_number(p[i]);
    return v;
}
INLINE void store_narrowed(uint16_t *p, vec v) {
    for (int i = 0; i < WIDTH; i++) p[i] = narrow_number(v[i]);
}
#endif

#define CONVERT(name, from, to, read, write)                         \
    static void name(const from *x, to *out, int64_t n) {            \
        int64_t i = 0;                                               \
        for (; i + WIDTH <= n; i += WIDTH) write(out + i, read(x + i)); \
        if (i == n) return;                                          \
        from rest[WIDTH] = {0};                                      \
        to made[WIDTH];                                              \
        memcpy(rest, x + i, sizeof(from) * (size_t)(n - i));         \
        write(made, read(rest));                                     \
        memcpy(out + i, made, sizeof(to) * (size_t)(n - i));         \
    }

INLINE void store_rounded(float *p, vec v) {
    uint16_t halves[WIDTH];
    store_narrowed(halves, v);
    store(p, widened(halves));
}

CONVERT(widen, uint16_t, float, widened, store)
CONVERT(narrow_down, float, uint16_t, load, store_narrowed)
CONVERT(round_off, float, float, load, store_rounded)

enum { TOGETHER = 1024 };  // elements that one thread converts at least

void float16(const void *record, const call *c, int64_t part, int64_t parts) {
    const float16_record *r = record;
    const char *x = at(c, r->x);
    char *out = at(c, r->out);
    SHARE((r->count + TOGETHER - 1) / TOGETHER);
    if (first == behind) return;
    const int64_t start = first * TOGETHER;
    const int64_t end = behind * TOGETHER < r->count ? behind * TOGETHER : r->count;
    if (r->way == FLOAT16_WIDEN)
        widen((const uint16_t *)x + start, (float *)out + start, end - start);
    else if (r->way == FLOAT16_NARROW)
        narrow_down((const float *)x + start, (uint16_t *)out + start, end - start);
    else
        round_off((const float *)x + start, (float *)out + start, end - start);
}
