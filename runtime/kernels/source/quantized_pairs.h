// Sums of products of bytes with AVX2 alone: both as 16 bits, two products to a lane.
//
// The inputs of a tile are widened once for all of its outputs: of four bytes the first and
// the third are a pair, the second and the fourth another. A product of pairs with 8 bits of
// each factor has 17 bits, so that sums are exact; vpmaddubsw's, of 16 bits, saturate.
#pragma once
#include "dot.h"
#include "tiles.h"

#define HAS_PAIRS (WIDTH == 8 && !HAS_DOT)

#if HAS_PAIRS
enum {
    PAIRED_ROWS = 6,       // of a tile: twelve sums, two weights, an input, a product
    FOURS = 264,           // of each row that are widened at once
    PITCH = FOURS + WIDTH  // of their pairs: 17 cache lines
};

typedef struct {
    const int32_t *pairs;  // (even or odd, PAIRED_ROWS, PITCH)
    int64_t count;         // of fours
    const int8_t *weight;  // a block of outputs, the next four inputs `step` behind
    int64_t step;
    int32_t *sums;  // rows, `apart`
    int64_t apart;
} paired;

// Bytes are at a multiple of 4. Pairs behind the last are written as well, up to a vector.
INLINE void widen(const uint8_t *x, int64_t count, int32_t *even, int32_t *odd) {
    const __m256i low = _mm256_set1_epi16(255);
    for (int64_t k = 0; k < count; k += WIDTH) {
        const __m256i four_each = (__m256i)load_up_to((const float *)x + k, count - k);
        _mm256_storeu_si256((__m256i *)(even + k), _mm256_and_si256(four_each, low));
        _mm256_storeu_si256((__m256i *)(odd + k), _mm256_srli_epi16(four_each, 8));
    }
}

// The vector in a register, here in the order of the source: where compilers schedule the
// loads of other rows first, sums are spilled.
INLINE void keep(__m256i *v) { __asm__ volatile("" : "+x"(*v)); }

// R rows: what the products with a block of outputs add to their sums.
INLINE void add_products(const int R, const paired *p) {
    __m256i acc[PAIRED_ROWS][PARTS];
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < PARTS; j++)
        memcpy(&acc[r][j], p->sums + r * p->apart + j * WIDTH, sizeof **acc);
    const int32_t *x = p->pairs;
    const int8_t *w = p->weight;
    for (int64_t k = p->count; k > 0; k--, x++, w += p->step)
        UNROLLED for (int odd = 0; odd < 2; odd++) {
            __m256i ws[PARTS];
            __asm__ volatile("" : "+r"(w));  // read again: no register is left for odd bytes
            UNROLLED for (int j = 0; j < PARTS; j++) {
                ws[j] = _mm256_loadu_si256((const __m256i *)(w + 4 * WIDTH * j));
                if (!odd) ws[j] = _mm256_slli_epi16(ws[j], 8);
                ws[j] = _mm256_srai_epi16(ws[j], 8);
                keep(&ws[j]);
            }
            UNROLLED for (int r = 0; r < R; r++) {
                __m256i s = _mm256_set1_epi32(x[(odd * PAIRED_ROWS + r) * PITCH]);
                keep(&s);
                UNROLLED for (int j = 0; j < PARTS; j++) {
                    const __m256i product = _mm256_madd_epi16(s, ws[j]);
                    acc[r][j] = _mm256_add_epi32(acc[r][j], product);
                    keep(&acc[r][j]);
                }
            }
        }
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < PARTS; j++)
        memcpy(p->sums + r * p->apart + j * WIDTH, &acc[r][j], sizeof **acc);
}

#define ROWS_AT_ONCE(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define DEFINE_PAIRED(R) \
    static void paired_##R(const paired *p) { add_products(R, p); }
#define NAMED_PAIRED(R) [R] = paired_##R,
ROWS_AT_ONCE(DEFINE_PAIRED)
static void (*const PAIRED[PAIRED_ROWS + 1])(const paired *) = {
    ROWS_AT_ONCE(NAMED_PAIRED)};

// Adds the products of a tile to its sums (row, nr blocks).
static void add_pairs(const uint8_t *x, const int32_t *from, int64_t rows,
                      const run *runs, int64_t n_runs, const int8_t *weight, int64_t nr,
                      int32_t *sums) {
    ALIGNED int32_t pairs[2 * PAIRED_ROWS * PITCH];
    paired p = {.pairs = pairs, .step = 4 * LANES * nr, .apart = nr * LANES};
    int64_t run_at = 0, done = 0;  // fours of the run
    while (run_at < n_runs) {
        p.count = 0;
        while (run_at < n_runs && p.count < FOURS) {
            const int64_t left = runs[run_at].length / 4 - done, room = FOURS - p.count;
            const int64_t count = left < room ? left : room;
            for (int64_t r = 0; r < rows; r++) {
                int32_t *even = pairs + r * PITCH + p.count;
                widen(x + from[r] + runs[run_at].x + 4 * done, count, even,
                      even + PAIRED_ROWS * PITCH);
            }
            p.count += count, done += count;
            if (count == left) run_at++, done = 0;
        }
        for (int64_t j = 0; j < nr; j++) {
            p.weight = weight + 4 * LANES * j, p.sums = sums + LANES * j;
            PAIRED[rows](&p);
        }
        weight += p.step * p.count;
    }
}
#endif
