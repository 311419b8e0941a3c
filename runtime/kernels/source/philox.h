// Philox 4x32-10 (Salmon et al. 2011): four random words for each counter and a key.
#pragma once
#include "vector.h"

// One counter to 8 bytes; what is above its lower 32 bits is anything.
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
INLINE counters product(counters words, uint32_t factor) {
#if defined(__AVX512F__)
    return (counters)_mm512_mul_epu32((__m512i)words, _mm512_set1_epi64(factor));
#elif defined(__AVX2__)
    return (counters)_mm256_mul_epu32((__m256i)words, _mm256_set1_epi64x(factor));
#else
    return (words & 0xffffffff) * factor;
#endif
}

// The words of the counters (first, 0, 0), (first + 1, 0, 0) and so on.
INLINE void philox(uint64_t first, const round_keys keys,
                   counters words[ABREAST_COUNTERS][4]) {
    UNROLLED for (int j = 0; j < ABREAST_COUNTERS; j++) {
        UNROLLED for (int i = 0; i < COUNTERS; i++)
            words[j][0][i] = first + (uint64_t)(j * COUNTERS + i);
        words[j][1] = words[j][0] >> 32;
        words[j][2] = words[j][3] = (counters){0};
    }
    UNROLLED for (int round = 0; round < ROUNDS; round++)
        UNROLLED for (int j = 0; j < ABREAST_COUNTERS; j++) {
            counters *w = words[j];
            const counters even = product(w[0], 0xD2511F53u);
            const counters odd = product(w[2], 0xCD9E8D57u);
            w[0] = odd >> 32 ^ w[1] ^ keys[round][0];
            w[1] = odd;
            w[2] = even >> 32 ^ w[3] ^ keys[round][1];
            w[3] = even;
        }
}
