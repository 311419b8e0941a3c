// Gradients of activations with bounds, and of max pooling.
#include <math.h>

#include "call.h"

INLINE vec gate_of(const int has_below, vec g, vec x, float above, float below,
                   float slope) {
    ivec is_outside = x <= all(above);
    if (has_below) is_outside |= x >= all(below);
    return choose(is_outside, (vec){0}, g * slope);
}

INLINE void gate_run(const int has_below, const gate_record *r, const float *g,
                     const float *x, float *out, int64_t n) {
    const float above = (float)r->above, below = (float)r->below, slope = (float)r->slope;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        store(out + i, gate_of(has_below, load(g + i), load(x + i), above, below, slope));
    if (i < n)
        store_some(out + i,
                   gate_of(has_below, load_some(g + i, n - i), load_some(x + i, n - i),
                           above, below, slope),
                   n - i);
}

// slope * g where x is between its bounds, else 0.
void gate(const void *record, const call *c, int64_t part, int64_t parts) {
    const gate_record *r = record;
    SHARE(r->count);
    const float *g = (const float *)at(c, r->g) + first, *x = (const float *)at(c, r->x) + first;
    float *out = (float *)at(c, r->out) + first;
    if (r->has_below)
        gate_run(1, r, g, x, out, behind - first);
    else
        gate_run(0, r, g, x, out, behind - first);
}

// The position of a window's maximum; the first of equal ones. After a NaN nothing is
// greater. -1: there is none.
static int64_t place_of_greatest(const max_pool_gradient_record *r, const float *x,
                                 const int64_t *start) {
    float best = -INFINITY;
    int64_t place = -1;
    for (int64_t i = 0; i < r->kernel0; i++) {
        const int64_t a = start[0] + i * r->dilation0;
        if (a < 0 || a >= r->size0) continue;
        for (int64_t j = 0; j < r->kernel1; j++) {
            const int64_t b = start[1] + j * r->dilation1;
            if (b < 0 || b >= r->size1) continue;
            for (int64_t k = 0; k < r->kernel2; k++) {
                const int64_t d = start[2] + k * r->dilation2;
                if (d < 0 || d >= r->size2) continue;
                const int64_t at_place = (a * r->size1 + b) * r->size2 + d;
                const float v = x[at_place];
                place = v > best || place < 0 ? at_place : place;
                best = v > best || v != v ? v : best;
            }
        }
    }
    return place;
}

// Values `step` apart, where all of them are in memory.
INLINE vec apart(const float *x, int64_t step) {
    if (step == 1) return load(x);
#if defined(__AVX512F__)
    if (step == 2) {
        const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8,
                                              6, 4, 2, 0);
        // The last of the second half is not read: it may be behind the array's end.
        const __m512 low = _mm512_loadu_ps(x);
        const __m512 high = _mm512_maskz_loadu_ps(0x7fff, x + 16);
        return (vec)_mm512_permutex2var_ps(low, even, high);
    }
#endif
    vec v;
    UNROLLED for (int i = 0; i < WIDTH; i++) v[i] = x[i * step];
    return v;
}

// Values at these places.
INLINE vec gathered(const float *x, ivec at) {
#if defined(__AVX512F__)
    return (vec)_mm512_i32gather_ps((__m512i)at, x, 4);
#else
    vec v;
    UNROLLED for (int i = 0; i < WIDTH; i++) v[i] = x[at[i]];
    return v;
#endif
}

// The same as place_of_greatest for up to WIDTH windows side by side, whose elements are
// all inside along the last axis; -1 for none.
static void places_of_greatest(const max_pool_gradient_record *r, const float *x,
                               const int64_t *start, int64_t some, int32_t *places) {
    vec best = all(-INFINITY);
    ivec found = (ivec){0} - 1, along;
    UNROLLED for (int i = 0; i < WIDTH; i++)
        along[i] = (int32_t)((i < some ? i : some - 1) * r->step2);
    for (int64_t i = 0; i < r->kernel0; i++) {
        const int64_t a = start[0] + i * r->dilation0;
        if (a < 0 || a >= r->size0) continue;
        for (int64_t j = 0; j < r->kernel1; j++) {
            const int64_t b = start[1] + j * r->dilation1;
            if (b < 0 || b >= r->size1) continue;
            const int64_t row = (a * r->size1 + b) * r->size2 + start[2];
            for (int64_t k = 0; k < r->kernel2; k++) {
                const int64_t at_place = row + k * r->dilation2;
                const vec v = some == WIDTH ? apart(x + at_place, r->step2)
                                            : gathered(x + at_place, along);
                const ivec is_more = (ivec)(v > best), takes = is_more | (found < 0);
                found = (takes & (along + (int32_t)at_place)) | (~takes & found);
                best = choose(is_more | (ivec)(v != v), v, best);
            }
        }
    }
    memcpy(places, &found, sizeof found);
}

// Each window's gradient goes to its maximum. Shares are planes.
void max_pool_gradient(const void *record, const call *c, int64_t part, int64_t parts) {
    const max_pool_gradient_record *r = record;
    const int64_t plane = r->size0 * r->size1 * r->size2;
    // Windows of a row that begin inside, and the first one that ends outside.
    const int64_t before = (r->before2 + r->step2 - 1) / r->step2;
    const int64_t room = r->size2 + r->before2 - (r->kernel2 - 1) * r->dilation2 - 1;
    const int64_t behind_row = room < 0 ? 0 : room / r->step2 + 1;
    const int64_t end = behind_row < r->place2 ? behind_row : r->place2;
    SHARE(r->planes);
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * plane;
        const float *g = (const float *)at(c, r->g) + u * r->place0 * r->place1 * r->place2;
        float *out = (float *)at(c, r->out) + u * plane;
        memset(out, 0, sizeof(float) * plane);
        for (int64_t i = 0; i < r->place0; i++)
            for (int64_t j = 0; j < r->place1; j++, g += r->place2)
                for (int64_t k = 0; k < r->place2;) {
                    const int64_t start[3] = {i * r->step0 - r->before0,
                                              j * r->step1 - r->before1,
                                              k * r->step2 - r->before2};
                    if (k >= before && k < end) {
                        int32_t places[WIDTH];
                        const int64_t some = end - k < WIDTH ? end - k : WIDTH;
                        places_of_greatest(r, x, start, some, places);
                        for (int64_t n = 0; n < some; n++)
                            if (places[n] >= 0) out[places[n]] += g[k + n];
                        k += some;
                        continue;
                    }
                    const int64_t place = place_of_greatest(r, x, start);
                    if (place >= 0) out[place] += g[k];
                    k++;
                }
    }
}
