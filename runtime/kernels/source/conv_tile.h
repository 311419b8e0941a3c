// What tiles of float32 and of bfloat16 share: their shapes, and what follows the sums.
#pragma once
#include "activation.h"
#include "conv.h"
#include "vector.h"

enum {
    MOST_VECTORS = MOST_BLOCKS * PARTS,
    SHORT = 32,   // products of a sum that begins with the bias
    SUMMED = 192  // products, about, that are summed one by one; such sums apart
};

// All tile shapes: X(pixels, blocks). Accumulators, weights and one input have to
// fit the registers: 32 vectors of 16 or of 4, or 16 vectors of 8.
#define REGISTERS (WIDTH == 8 ? 16 : 32)
#if WIDTH == 16
#define ROWS_OF {0, 14, 14, 9, 6}
#define TILES(X, S)                                                                  \
    X(1, 1, S) X(2, 1, S) X(3, 1, S) X(4, 1, S) X(5, 1, S) X(6, 1, S) X(7, 1, S)     \
    X(8, 1, S) X(9, 1, S) X(10, 1, S) X(11, 1, S) X(12, 1, S) X(13, 1, S)            \
    X(14, 1, S) X(1, 2, S) X(2, 2, S) X(3, 2, S) X(4, 2, S) X(5, 2, S) X(6, 2, S)    \
    X(7, 2, S) X(8, 2, S) X(9, 2, S) X(10, 2, S) X(11, 2, S) X(12, 2, S)             \
    X(13, 2, S) X(14, 2, S) X(1, 3, S) X(2, 3, S) X(3, 3, S) X(4, 3, S) X(5, 3, S)   \
    X(6, 3, S) X(7, 3, S) X(8, 3, S) X(9, 3, S) X(1, 4, S) X(2, 4, S) X(3, 4, S)     \
    X(4, 4, S) X(5, 4, S) X(6, 4, S)
#elif WIDTH == 8
#define ROWS_OF {0, 6, 3, 0, 1}
#define TILES(X, S)                                                                  \
    X(1, 1, S) X(2, 1, S) X(3, 1, S) X(4, 1, S) X(5, 1, S) X(6, 1, S)                \
    X(1, 2, S) X(2, 2, S) X(3, 2, S) X(1, 4, S)
#else
#define ROWS_OF {0, 6, 3, 0, 0}
#define TILES(X, S)                                                                  \
    X(1, 1, S) X(2, 1, S) X(3, 1, S) X(4, 1, S) X(5, 1, S) X(6, 1, S)                \
    X(1, 2, S) X(2, 2, S) X(3, 2, S)
#endif

// One of n vectors of weights that R pixels are multiplied by, in a register if all fit.
INLINE vec weight_at(const int R, const int n, const float *w) {
    return R > 1 && (R + 1) * n < REGISTERS ? in_register(load(w)) : load(w);
}

// Ask for the lines that are due with so many products.
INLINE void ask_ahead(asked *a, int64_t products) {
    if (a->lines <= 0) return;
    int64_t some = (products * a->pace >> 8) + 1;
    a->lines -= some;
    for (; some > 0; some--) {
        __builtin_prefetch(a->at, 0, 2);
        const int is_last = --a->left == 0;
        if (is_last) a->left = a->row;
        a->at += is_last ? a->jump : LANES;
    }
}

// What R pixels read of a block behind the next one, which comes too late else. There must
// be one: lines of pages that are not mapped take as long to ask for as many products.
INLINE void ask_for_block(const int R, const int stride, const float *x) {
    UNROLLED for (int r = 0; r < R; r++) __builtin_prefetch(x + r * stride, 0, 3);
}

// Where the results go, which is seldom in cache; a sum to add often is there too.
INLINE void ask_for_results(const int R, const int NR, const piece *p) {
    const int is_deep = p->t->n_last && p->runs[p->t->last].length > LANES;
    if (R > 2 && (p->record->blocks > 1 || is_deep)) {
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < NR; j++)
            __builtin_prefetch(p->out + p->to[r] + j * p->record->out_step, 1, 3);
    }
}

// n: vectors of each of R places.
INLINE void add_bias(const int R, const int n, vec (*acc)[MOST_VECTORS], const piece *p) {
    UNROLLED for (int j = 0; j < n; j++) {
        const vec b = load(p->bias + WIDTH * j);
        UNROLLED for (int r = 0; r < R; r++) acc[r][j] += b;
    }
}

// The residual, the activation, and the results, of which the first is at *to; where
// `is_even`, the others follow it. Stores may write to what p points to, as far as
// compilers know: what they need is read before.
INLINE void leave(const int R, const int n, vec (*acc)[MOST_VECTORS], const piece *p,
                  const int is_even, const int32_t *to) {
    const conv_record *record = p->record;
    const float *residual = p->residual;
    float *out = p->out;
    const int64_t step = record->out_step;
#define PLACE(r, j) \
    ((is_even ? *to + (r) * LANES : to[r]) + (j) / PARTS * step + (j) % PARTS * WIDTH)
    if (residual) {
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
            acc[r][j] += load(residual + PLACE(r, j));
    }
    activate_cheaply(R, n, MOST_VECTORS, acc[0], record->act, record->low, record->high);
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
        store(out + PLACE(r, j), acc[r][j]);
#undef PLACE
}

// Every tile by a file's `multiply`, and KERNELS: by stride, pixels and blocks.
#define DEFINE(R, NR, S) \
    static void tile_##R##_##NR##_##S(const piece *p) { multiply(R, NR, S, p); }
#define NAMED(R, NR, S) [S / 16][R][NR] = tile_##R##_##NR##_##S,
#define DEFINE_TILES                                                               \
    TILES(DEFINE, 0)                                                               \
    TILES(DEFINE, 16)                                                              \
    static void (*const KERNELS[2][MOST_PIXELS + 1][MOST_BLOCKS + 1])(const piece *) = \
        {TILES(NAMED, 0) TILES(NAMED, 16)};
