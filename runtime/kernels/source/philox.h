// Philox 4x32-10 (Salmon et al. 2011): four random words for each counter and a key.
#pragma once
#include "vector.h"

// One counter to 8 bytes, whose upper 32 bits are arbitrary.
typedef uint64_t counters __attribute__((vector_size(4 * WIDTH)));

// Vectors of counters that go through together, as a product's result takes a while.
enum { ROUNDS = 10, COUNTERS = WIDTH / 2, ABREAST_COUNTERS = 4 };

typedef uint64_t round_keys[ROUNDS][2];

INLINE void spread_key(uint64_t key, round_keys keys) {
    for (uint32_t i = 0; i < ROUNDS; i++) {
        keys[i][0] = (uint32_t)key + i * 0x9E3779B9u;
        keys[i][1] = (uint32_t)(key >> 32) + i * 0xBB67AE85u;
    }
}

// The lower words times a factor.
INLINE counters word_product(counters words, uint32_t factor) {
#if defined(__AVX512F__)
    return (counters)_mm512_mul_epu32((__m512i)words, _mm512_set1_epi64(factor));
#elif defined(__AVX2__)
    return (counters)_mm256_mul_epu32((__m256i)words, _mm256_set1_epi64x(factor));
#else
    return (words & 0xffffffff) * factor;
#endif
}

// The numbers that go through together: four of each counter.
enum { EACH = 4 * COUNTERS, TOGETHER = ABREAST_COUNTERS * EACH };

// The words of counters (n, 0, 0), in rows of four: first, first + 1 and so on, the next
// row `step` further; with a step of 4 they are counters in a row.
INLINE void philox(uint64_t first, uint64_t step, const round_keys keys,
                   counters words[ABREAST_COUNTERS][4]) {
    UNROLLED for (int j = 0; j < ABREAST_COUNTERS; j++) {
        UNROLLED for (int i = 0; i < COUNTERS; i++) {
            const uint64_t n = (uint64_t)(j * COUNTERS + i);
            words[j][0][i] = first + n / 4 * step + n % 4;
        }
        words[j][1] = words[j][0] >> 32;
        words[j][2] = words[j][3] = (counters){0};
    }
    UNROLLED for (int round = 0; round < ROUNDS; round++)
        UNROLLED for (int j = 0; j < ABREAST_COUNTERS; j++) {
            counters *w = words[j];
            const counters even = word_product(w[0], 0xD2511F53u);
            const counters odd = word_product(w[2], 0xCD9E8D57u);
            w[0] = odd >> 32 ^ w[1] ^ keys[round][0];
            w[1] = odd;
            w[2] = even >> 32 ^ w[3] ^ keys[round][1];
            w[3] = even;
        }
}

typedef uint32_t fours __attribute__((vector_size(4 * COUNTERS)));

// Whether the numbers of such counters are below the bound, as bytes in their order.
static void numbers_below(uint64_t bound, uint64_t first, uint64_t step,
                          const round_keys keys, uint8_t *out) {
    counters words[ABREAST_COUNTERS][4];
    philox(first, step, keys, words);
    UNROLLED for (int j = 0; j < ABREAST_COUNTERS; j++) {
        counters found = {0};
        UNROLLED for (int i = 0; i < 4; i++)  // a negative difference has bits above
            found |= ((words[j][i] & 0xffffffff) - bound) & (1ull << (32 + 8 * i));
        const fours bytes = __builtin_convertvector(found >> 32, fours);
        memcpy(out + j * EACH, &bytes, sizeof bytes);
    }
}
