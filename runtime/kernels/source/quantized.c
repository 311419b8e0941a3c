// Products and convolutions of codes: exact integer sums, then the scales.
//
// x: bytes, 128 above their codes, in rows; `from` says where those of a pixel begin. A
// margin around maps represents 0, so that every pixel sees all taps. Weights are (group
// of nr blocks of outputs, four inputs, 16 nr outputs, these four); where every channel
// has a window of its own, (block, four rows of it, columns of it, 16 channels, these
// four).
#include "quantized_pairs.h"
#include "quantized_windows.h"

enum {
    AHEAD = 4096,      // of weights: bytes that are asked for before they are used
    ROOM = 256 << 10   // bytes that inputs and results of some tiles may take in cache
};

typedef struct {
    const uint8_t *x;
    const int8_t *weight;
    const int32_t *from;
    const run *runs;
    int64_t n_runs;
    const int32_t *start;  // of sums
    int32_t *sums;         // (row, nr blocks)
    const outputs *to;
    const int32_t *places;  // of codes of pixels, from `codes` on; 0: sums are wanted
    uint8_t *codes;
} piece;

INLINE int32_t four(const uint8_t *p) {
    int32_t n;
    memcpy(&n, p, 4);
    return n;
}

// Sums of a tile, or its codes: then sums are stored and 1 is the result where codes are
// to be found by division.
INLINE int multiply(const int R, const int NR, const piece *p) {
    const int n = NR * PARTS;
    ivec acc[MOST_ROWS][MOST * PARTS];
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
        acc[r][j] = whole(p->start + j * WIDTH);
    const int8_t *w = p->weight;
    for (const run *runs = p->runs; runs < p->runs + p->n_runs; runs++) {
        const uint8_t *at[MOST_ROWS];
        UNROLLED for (int r = 0; r < R; r++) at[r] = p->x + p->from[r] + runs->x;
        for (int64_t k = 0; k < runs->length; k += 4, w += 4 * NR * LANES) {
            ivec ws[MOST * PARTS];
            UNROLLED for (int j = 0; j < n; j++) memcpy(&ws[j], w + 4 * WIDTH * j, 4 * WIDTH);
            UNROLLED for (int j = 0; j < NR; j++)
                __builtin_prefetch(w + AHEAD + 4 * LANES * j, 0, 3);
            UNROLLED for (int r = 0; r < R; r++) {
                const ivec s = four(at[r] + k) - (ivec){0};
                UNROLLED for (int j = 0; j < n; j++) acc[r][j] = dot(acc[r][j], s, ws[j]);
            }
        }
    }
    if (p->places) {
        const int32_t *places = p->places;
        uint8_t *codes = p->codes;
        coding by[MOST * PARTS];
        ivec nearest[MOST * PARTS], all_near = (ivec){0} + INT32_MAX;
        UNROLLED for (int j = 0; j < n; j++) {
            by[j] = coding_of(p->to, j * WIDTH);
            nearest[j] = all_near;
        }
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++) {
            const bytes b = product_codes(acc[r][j], &by[j], &nearest[j]);
            memcpy(codes + places[r] + j * WIDTH, &b, WIDTH);
        }
        UNROLLED for (int j = 0; j < n; j++) all_near = lesser(all_near, nearest[j]);
        if (!is_near(all_near, p->to->doubt)) return 0;
    }
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
        memcpy(p->sums + (r * n + j) * WIDTH, &acc[r][j], 4 * WIDTH);
    return 1;
}

// X(pixels, blocks): accumulators, weights and one input fit the registers.
#if WIDTH == 16
#define ROWS_OF {0, 12, 12, 0, 6}
#define SIZES(X)                                                                     \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(9, 1) X(10, 1) \
    X(11, 1) X(12, 1) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) \
    X(9, 2) X(10, 2) X(11, 2) X(12, 2) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4)
#elif HAS_PAIRS
#define ROWS_OF {0, PAIRED_ROWS, PAIRED_ROWS, 0, PAIRED_ROWS}
#define SIZES(X) X(1, 4)  // one row reads weights once, in order
#else
#define ROWS_OF {0, 4, 2, 0, 1}
#define SIZES(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(1, 2) X(2, 2) X(1, 4)
#endif
#define DEFINE(R, NR) \
    static int tile_##R##_##NR(const piece *p) { return multiply(R, NR, p); }
#define NAMED(R, NR) [R][NR] = tile_##R##_##NR,
SIZES(DEFINE)
static int (*const KERNELS[MOST_ROWS + 1][MOST + 1])(const piece *) = {SIZES(NAMED)};
static const int ROWS[MOST + 1] = ROWS_OF;

// As `multiply`.
INLINE int sum_tile(int64_t rows, int64_t nr, const piece *p) {
#if HAS_PAIRS
    if (!KERNELS[rows][nr]) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < nr * LANES; j += LANES)
                memcpy(p->sums + r * nr * LANES + j, p->start + j, 4 * LANES);
        add_pairs(p->x, p->from, rows, p->runs, p->n_runs, p->weight, nr, p->sums);
        return 1;
    }
#endif
    return KERNELS[rows][nr](p);
}

// The sum of four bytes or eight, as numbers of 16 bits in one of 64.
INLINE int32_t sum_of_eight(uint64_t v) {
    const uint64_t even = 0x00ff00ff00ff00ff;
    return (int32_t)(((v & even) + (v >> 8 & even)) * 0x0001000100010001 >> 48);
}

// The sum of all bytes in a pixel's receptive field. Runs are of whole fours.
static int32_t bytes_of(const piece *p, int64_t row) {
    const ivec ones = (ivec){0} + 0x01010101;
    ivec sum = {0};
    int32_t total = 0;
    for (const run *runs = p->runs; runs < p->runs + p->n_runs; runs++) {
        const uint8_t *x = p->x + p->from[row] + runs->x;
        int64_t k = 0;
        ivec four_each;
        for (; k + 4 * WIDTH <= runs->length; k += 4 * WIDTH) {
            memcpy(&four_each, x + k, sizeof four_each);
            sum = dot(sum, four_each, ones);
        }
        for (; k + 8 <= runs->length; k += 8) {
            uint64_t eight;
            memcpy(&eight, x + k, sizeof eight);
            total += sum_of_eight(eight);
        }
        if (k < runs->length) total += sum_of_eight((uint32_t)four(x + k));
    }
    for (int i = 0; i < WIDTH; i++) total += sum[i];
    return total;
}

static const int32_t NOTHING[MOST * LANES];

// Results of tiles of a group, from `low` up to `high`; channel: its first output.
static void some_tiles(const quantized_record *r, const call *c, int64_t channel,
                       int64_t low, int64_t high, int64_t tiles) {
    const int64_t rows = r->rows / tiles, longer = r->rows % tiles, nr = r->nr;
    ALIGNED int32_t sums[MOST_ROWS * MOST * LANES];
    int32_t above[MOST_ROWS];
    outputs to;
    outputs_of(r, c, channel, &to);
    const int is_direct = is_of_codes_alone(r, &to) && to.doubt
                          && channel + nr * LANES <= r->outs;
    const int32_t *from = at(c, r->from), *places = at(c, r->places);
    piece p = {
        .x = at(c, r->x),
        .weight = (const int8_t *)at(c, r->weight) + channel * r->depth,
        .runs = at(c, r->runs),
        .n_runs = r->n_runs,
        .start = r->one ? to.base : NOTHING,
        .sums = sums,
        .to = &to,
        .codes = is_direct ? (uint8_t *)at(c, r->codes) + channel : 0,
    };
    for (int64_t t = low; t < high; t++) {
        const int64_t first = t * rows + (t < longer ? t : longer);
        const int64_t count = rows + (t < longer);
        p.from = from + first;
        p.places = is_direct ? places + first : 0;
        if (!sum_tile(count, nr, &p)) continue;
        for (int64_t row = 0; row < count && to.is_shifted; row++)
            above[row] = bytes_of(&p, row) - (int32_t)r->depth * middle_of(r, c, first + row);
        finish_tile(r, c, &to, sums, to.is_shifted ? above : 0, channel, first, count);
    }
}

// Tiles that go through all groups before the next ones, so that what is read and
// written of them stays in cache; all of them if they are few.
static int64_t together(const quantized_record *r, const call *c, int64_t tiles) {
    const int32_t *from = at(c, r->from);
    const int64_t read = from[r->rows - 1] - from[0];
    const int64_t size = read + r->rows * r->groups * r->nr * LANES;
    return size <= ROOM ? tiles : (tiles * (ROOM / 2) + size - 1) / size;
}

void quantized(const void *record, const call *c, int64_t part, int64_t parts) {
    const quantized_record *r = record;
    const int64_t most = ROWS[r->nr], tiles = (r->rows + most - 1) / most;
    if (r->kernel0) {
        windows(r, c, part, parts);
        return;
    }
    const int64_t chunk = together(r, c, tiles);
    SHARE(r->groups * tiles);
    for (int64_t start = 0; start < tiles; start += chunk) {
        const int64_t end = start + chunk < tiles ? start + chunk : tiles;
        for (int64_t group = 0; group < r->groups; group++) {
            const int64_t u = start * r->groups + group * (end - start) - start;
            const int64_t low = first - u > start ? first - u : start;
            const int64_t high = behind - u < end ? behind - u : end;
            if (low < high) some_tiles(r, c, group * r->nr * LANES, low, high, tiles);
        }
    }
}
