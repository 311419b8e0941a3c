// Which elements of a map the taps of a window read, for a stretch of places.
//
// A place q reads, for tap t, the position q * step + offset(t) along each of three axes:
// a convolution, or one phase of a transposed one. Places of all images are in a row.
#pragma once
#include "call.h"

typedef struct {
    int64_t batch, sizes[3], places[3], step[3], image;  // image: floats to the next one
    const int32_t *offsets;                              // (tap, 3)
} grid;

enum { IS_MIXED = -1, IS_OUTSIDE = -2 };

// The coordinates of `count` places from `start` on; a place after the last is nowhere.
typedef struct {
    int32_t *image, *at[3];
} places;

static void find_places(const grid *g, int64_t start, int64_t count, places p) {
    const int64_t of_image = g->places[0] * g->places[1] * g->places[2];
    for (int64_t j = 0; j < count; j++) {
        const int64_t u = start + j, n = u / of_image, rest = u % of_image;
        const int is_there = n < g->batch;
        p.image[j] = is_there ? (int32_t)(n * g->image) : 0;
        p.at[0][j] = is_there ? (int32_t)(rest / (g->places[1] * g->places[2])) : -(1 << 20);
        p.at[1][j] = (int32_t)(rest / g->places[2] % g->places[1]);
        p.at[2][j] = (int32_t)(rest % g->places[2]);
    }
}

// index: the element that each place reads for a tap, -1 outside. kind, for every WIDTH
// of them: the first one's element where they are contiguous, else IS_....
static void find_elements(const grid *g, int64_t tap, int64_t count, places p,
                          int32_t *index, int32_t *kind) {
    const int32_t *o = g->offsets + 3 * tap;
    const int32_t s0 = (int32_t)g->step[0], s1 = (int32_t)g->step[1],
                  s2 = (int32_t)g->step[2], n0 = (int32_t)g->sizes[0],
                  n1 = (int32_t)g->sizes[1], n2 = (int32_t)g->sizes[2];
    for (int64_t j = 0; j < count; j++) {
        const int32_t a = p.at[0][j] * s0 + o[0], b = p.at[1][j] * s1 + o[1],
                      c = p.at[2][j] * s2 + o[2];
        const int is_in = (a >= 0) & (a < n0) & (b >= 0) & (b < n1) & (c >= 0) & (c < n2);
        const uint32_t at = ((uint32_t)a * (uint32_t)n1 + (uint32_t)b) * (uint32_t)n2;
        index[j] = is_in ? (int32_t)(at + (uint32_t)c) + p.image[j] : -1;
    }
    for (int64_t j = 0; j < count; j += WIDTH, kind++) {
        int are_beside = index[j] >= 0, are_outside = 1;
        for (int64_t i = 0; i < WIDTH; i++) {
            are_beside &= index[j + i] == index[j] + (int32_t)i;
            are_outside &= index[j + i] < 0;
        }
        *kind = are_beside ? index[j] : are_outside ? IS_OUTSIDE : IS_MIXED;
    }
}

// The elements of WIDTH places, zeros outside.
INLINE vec gathered(const float *x, const int32_t *index, int32_t kind) {
    if (kind >= 0) return load(x + kind);
    if (kind == IS_OUTSIDE) return (vec){0};
#if defined(__AVX512F__)
    const __m512i i = _mm512_loadu_si512(index);
    const __mmask16 is_in = _mm512_cmpge_epi32_mask(i, _mm512_setzero_si512());
    return (vec)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), is_in, i, x, 4);
#elif defined(__AVX2__)
    const __m256i i = _mm256_loadu_si256((const __m256i *)index);
    const __m256 is_in = _mm256_castsi256_ps(_mm256_xor_si256(i, _mm256_set1_epi32(-1)));
    return (vec)_mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, i, is_in, 4);
#else
    vec v = {0};
    UNROLLED for (int l = 0; l < WIDTH; l++) v[l] = index[l] < 0 ? 0 : x[index[l]];
    return v;
#endif
}

#define GRID_OF(r, taps)                                                             \
    {                                                                                \
        .batch = (r)->batch, .sizes = {(r)->size0, (r)->size1, (r)->size2},          \
        .places = {(r)->place0, (r)->place1, (r)->place2},                           \
        .step = {(r)->step0, (r)->step1, (r)->step2}, .image = (r)->image,           \
        .offsets = (taps)                                                            \
    }
