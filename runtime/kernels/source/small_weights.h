// Products of a row with packed weights of 8 or 4 bits, for 16 or 32 outputs at a time.
#pragma once
#include "bytes.h"
#include "digits.h"
#include "dot.h"

enum {
    WIDE = 32,            // outputs of a group whose scales go by input
    TOGETHER = WIDTH / 4, // inputs whose products are summed side by side
    STRETCH = 128 * TOGETHER,
    FURTHER = 4096        // bytes of weights that are asked for before they are used
};

INLINE ivec four_of(const int8_t *p) {
    int32_t n;
    memcpy(&n, p, 4);
    return n - (ivec){0};
}

// Sums of LANES outputs in integers. Weights of a block of inputs: unsigned bytes (four
// inputs, outputs, these four); of 4 bits, a byte holds inputs i and i + 16. A scale is
// of `each` blocks; zeros: what their unsigned codes are above, if it is not `middle`.
INLINE void dot_group(const int bits, const int has_zeros, const number_block *x,
                      const uint8_t *w, const float *scales, const int32_t *zeros,
                      int64_t counts, int64_t each, float *y) {
    enum { STEPS = BLOCK / 4, BYTES = 4 * WIDTH };
    const int32_t middle = bits == 8 ? 128 : 8;
    vec sum[PARTS] = {{0}};
    for (int64_t s = 0; s < counts; s++, scales += LANES) {
        for (int64_t k = 0; k < each; k++, x++) {
            ivec acc[DIGITS][PARTS];
            UNROLLED for (int p = 0; p < PARTS; p++) UNROLLED for (int d = 0; d < DIGITS; d++) {
                ivec off = middle - (ivec){0};
                if (has_zeros) memcpy(&off, zeros + s * LANES + p * WIDTH, sizeof off);
                acc[d][p] = -(off * x->sum[d]);
            }
            UNROLLED for (int i = 0; i < STEPS * bits / 8; i++, w += PARTS * BYTES) {
                __builtin_prefetch(w + FURTHER, 0, 3);
                UNROLLED for (int p = 0; p < PARTS; p++) {
                    ivec both;
                    memcpy(&both, w + p * BYTES, sizeof both);
                    const ivec low = bits == 8 ? both : both & 0x0f0f0f0f,
                               high = both >> 4 & 0x0f0f0f0f;
                    UNROLLED for (int d = 0; d < DIGITS; d++) {
                        const int8_t *digit = x->digit[d] + 4 * i;
                        acc[d][p] = dot(acc[d][p], low, four_of(digit));
                        if (bits == 4)
                            acc[d][p] = dot(acc[d][p], high, four_of(digit + BLOCK / 2));
                    }
                }
            }
            UNROLLED for (int p = 0; p < PARTS; p++) {
                vec f = __builtin_convertvector(acc[0][p], vec);
                UNROLLED for (int d = 1; d < DIGITS; d++)
                    f = f * 256.f + __builtin_convertvector(acc[d][p], vec);
                sum[p] += f * load(scales + p * WIDTH) * x->unit;
            }
        }
    }
    UNROLLED for (int p = 0; p < PARTS; p++) store(y + p * WIDTH, sum[p]);
}

// The same in floats, for rows without digits.
static void plain_group(const int bits, const float *x, const uint8_t *w,
                        const float *scales, const int32_t *zeros, int64_t counts,
                        int64_t block, float *y) {
    for (int o = 0; o < LANES; o++) {
        float sum = 0;
        for (int64_t i = 0; i < counts * block; i++) {
            const int64_t in = i % BLOCK, of = i / block * LANES + o;
            const int64_t row = i / BLOCK * (BLOCK / 4) * bits / 8;
            const int64_t quad = bits == 8 ? in / 4 : in % (BLOCK / 2) / 4;
            const uint8_t byte = w[(row + quad) * 4 * LANES + 4 * o + in % 4];
            const int32_t code = bits == 8 ? byte : in < BLOCK / 2 ? byte & 15 : byte >> 4;
            const int32_t middle = zeros ? zeros[of] : bits == 8 ? 128 : 8;
            sum += x[i] * ((float)(code - middle) * scales[of]);
        }
        y[o] = sum;
    }
}

// The weights of an input for WIDE outputs: bytes, signed where they are of 8 bits; of 4
// bits, a byte holds outputs o and o + 16.
INLINE void wide_values(const int bits, const uint8_t *w, float zero, vec *values) {
    if (bits == 8) {
        UNROLLED for (int v = 0; v < WIDE / WIDTH; v++)
            values[v] = from_chars((const int8_t *)w + v * WIDTH) - zero;
        return;
    }
#if WIDTH == 16
    const ivec both = widened(w);  // the permutation reads the lowest 4 bits
    const vec numbers = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    const __m512 table = (__m512)(numbers - zero);
    values[0] = (vec)_mm512_permutexvar_ps((__m512i)both, table);
    values[1] = (vec)_mm512_permutexvar_ps((__m512i)(both >> 4), table);
#else
    UNROLLED for (int v = 0; v < WIDE / 2 / WIDTH; v++) {
        const ivec both = widened(w + v * WIDTH);
        values[v] = __builtin_convertvector((both & 15) - 8, vec) - zero;
        values[v + WIDE / 2 / WIDTH] = __builtin_convertvector((both >> 4) - 8, vec) - zero;
    }
#endif
}

// Sums of WIDE outputs in floats, with a scale for each input.
INLINE void wide_group(const int bits, const int has_zeros, const float *x,
                       const uint8_t *w, const float *scales, const float *zeros,
                       int64_t n, float *y) {
    enum { V = WIDE / WIDTH };
    const int64_t bytes = WIDE * bits / 8;
    vec total[V] = {{0}};
    ALIGNED float scaled[STRETCH];
    for (int64_t start = 0; start < n; start += STRETCH) {
        const int64_t count = n - start < STRETCH ? n - start : STRETCH;
        for (int64_t i = 0; i < count; i++) scaled[i] = x[start + i] * scales[start + i];
        vec sum[TOGETHER][V] = {{{0}}};
        int64_t i = 0;
        for (; i + TOGETHER <= count; i += TOGETHER, w += TOGETHER * bytes) {
            UNROLLED for (int u = 0; u < TOGETHER * bytes; u += 64)
                __builtin_prefetch(w + u + FURTHER, 0, 3);
            UNROLLED for (int t = 0; t < TOGETHER; t++) {
                vec values[V];
                wide_values(bits, w + t * bytes, has_zeros ? zeros[start + i + t] : 0, values);
                UNROLLED for (int v = 0; v < V; v++) sum[t][v] += values[v] * scaled[i + t];
            }
        }
        for (; i < count; i++, w += bytes) {
            vec values[V];
            wide_values(bits, w, has_zeros ? zeros[start + i] : 0, values);
            UNROLLED for (int v = 0; v < V; v++) sum[0][v] += values[v] * scaled[i];
        }
        UNROLLED for (int t = 0; t < TOGETHER; t++) UNROLLED for (int v = 0; v < V; v++)
            total[v] += sum[t][v];
    }
    UNROLLED for (int v = 0; v < V; v++) store(y + v * WIDTH, total[v]);
}
