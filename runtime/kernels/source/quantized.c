// Products and convolutions of codes: exact integer sums, then the scales.
//
// x: bytes, 128 above their codes, in rows; `from` says where those of a pixel begin. A
// margin around maps represents 0, so that every pixel sees all taps. Weights are (group
// of nr blocks of outputs, four inputs, 16 nr outputs, these four); where every channel
// has a window of its own, (block, four rows of it, columns of it, 16 channels, these
// four).
#include "dot.h"
#include "results.h"
#include "tiles.h"

enum {
    AHEAD = 4096,      // of weights: bytes that are asked for before they are used
    MOST_COLUMNS = 64  // of input that a tile's windows go over
};

typedef struct {
    const uint8_t *x;
    const int8_t *weight;
    const int32_t *from;
    const run *runs;
    int64_t n_runs;
    int32_t *sums;  // (row, nr blocks)
} piece;

INLINE int32_t four(const uint8_t *p) {
    int32_t n;
    memcpy(&n, p, 4);
    return n;
}

INLINE void multiply(const int R, const int NR, const piece *p) {
    const int n = NR * PARTS;
    ivec acc[MOST_ROWS][MOST * PARTS];
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
        acc[r][j] = (ivec){0};
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
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
        memcpy(p->sums + (r * n + j) * WIDTH, &acc[r][j], 4 * WIDTH);
}

// X(pixels, blocks): accumulators, weights and one input fit the registers.
#if WIDTH == 16
#define ROWS_OF {0, 12, 12, 0, 6}
#define SIZES(X)                                                                     \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(9, 1) X(10, 1) \
    X(11, 1) X(12, 1) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) \
    X(9, 2) X(10, 2) X(11, 2) X(12, 2) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4)
#else
#define ROWS_OF {0, 4, 2, 0, 1}
#define SIZES(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(1, 2) X(2, 2) X(1, 4)
#endif
#define DEFINE(R, NR) \
    static void tile_##R##_##NR(const piece *p) { multiply(R, NR, p); }
#define NAMED(R, NR) [R][NR] = tile_##R##_##NR,
SIZES(DEFINE)
static void (*const KERNELS[MOST_ROWS + 1][MOST + 1])(const piece *) = {SIZES(NAMED)};
static const int ROWS[MOST + 1] = ROWS_OF;

// The sum of all bytes in a pixel's receptive field.
static int32_t bytes_of(const piece *p, int64_t row) {
    const ivec ones = (ivec){0} + 0x01010101;
    ivec sum = {0};
    for (const run *runs = p->runs; runs < p->runs + p->n_runs; runs++) {
        const uint8_t *x = p->x + p->from[row] + runs->x;
        int64_t k = 0;
        ivec four_each;
        for (; k + 4 * WIDTH <= runs->length; k += 4 * WIDTH) {
            memcpy(&four_each, x + k, sizeof four_each);
            sum = dot(sum, four_each, ones);
        }
        for (; k < runs->length; k++) sum[0] += x[k];
    }
    int32_t total = 0;
    for (int i = 0; i < WIDTH; i++) total += sum[i];
    return total;
}

// Results of a tile of a group, whose first output is `channel`.
static void one_tile(const quantized_record *r, const call *c, const outputs *to,
                     int64_t channel, int64_t first, int64_t rows) {
    const int64_t nr = r->nr;
    int32_t sums[MOST_ROWS * MOST * LANES], above[MOST_ROWS];
    const piece p = {
        .x = at(c, r->x),
        .weight = (const int8_t *)at(c, r->weight) + channel * r->depth,
        .from = (const int32_t *)at(c, r->from) + first,
        .runs = at(c, r->runs),
        .n_runs = r->n_runs,
        .sums = sums,
    };
    KERNELS[rows][nr](&p);
    for (int64_t row = 0; row < rows && to->is_shifted; row++)
        above[row] = bytes_of(&p, row) - (int32_t)r->depth * middle_of(r, c, first + row);
    for (int64_t j = 0; j < nr; j++) {
        const sums_of_block s = {to,    sums + j * LANES, to->is_shifted ? above : 0,
                                 nr * LANES, first, rows, channel + j * LANES, j * LANES};
        if (s.channel < r->outs) finish(r, c, &s);
    }
}

// Four bytes of a channel, one below the other, in each lane: some rows of a window.
INLINE ivec column(const uint8_t *x, int64_t line, int64_t rows) {
    ivec all_four = {0};
    for (int64_t i = 0; i < rows; i++) all_four |= widened(x + i * line) << (int)(8 * i);
    return all_four;
}

// R pixels side by side: sums of LANES / PARTS channels over one row of columns.
INLINE void weigh(const int R, const ivec *columns, const quantized_record *r,
                  const int8_t *w, int32_t *sums) {
    ivec acc[MOST_ROWS];
    UNROLLED for (int i = 0; i < R; i++) acc[i] = whole(sums + i * LANES);
    for (int64_t k = 0; k < r->kernel1; k++) {
        ivec tap;
        memcpy(&tap, w + k * 4 * LANES, sizeof tap);
        const ivec *at = columns + k * r->dilation1;
        UNROLLED for (int i = 0; i < R; i++) acc[i] = dot(acc[i], at[i * r->stride], tap);
    }
    UNROLLED for (int i = 0; i < R; i++) memcpy(sums + i * LANES, &acc[i], sizeof *acc);
}

// A block of channels, each with weights of its own: some pixels of a line.
static void window_tile(const quantized_record *r, const call *c, const outputs *to,
                        int64_t channel, int64_t first, int64_t rows) {
    enum { TOGETHER = 4 };
    int32_t sums[MOST_ROWS * LANES] = {0};
    ivec columns[MOST_COLUMNS];
    const uint8_t *x = (const uint8_t *)at(c, r->x)
                       + ((const int32_t *)at(c, r->from))[first] + channel;
    const int8_t *w = (const int8_t *)at(c, r->weight) + channel * r->depth;
    const int64_t count = (rows - 1) * r->stride + (r->kernel1 - 1) * r->dilation1 + 1;
    const int64_t down = r->dilation0 * r->line;
    for (int64_t k = 0; k < r->kernel0; k += 4, w += 4 * LANES * r->kernel1)
        UNROLLED for (int v = 0; v < PARTS; v++) {
            const uint8_t *top = x + k * down + v * WIDTH;
            const int64_t deep = r->kernel0 - k < 4 ? r->kernel0 - k : 4;
            if (deep == 3)
                for (int64_t i = 0; i < count; i++)
                    columns[i] = column(top + i * r->row, down, 3);
            else
                for (int64_t i = 0; i < count; i++)
                    columns[i] = column(top + i * r->row, down, deep);
            int64_t i = 0;
            const int8_t *own = w + 4 * WIDTH * v;
            for (; i + TOGETHER <= rows; i += TOGETHER)
                weigh(TOGETHER, columns + i * r->stride, r, own,
                      sums + i * LANES + v * WIDTH);
            for (; i < rows; i++)
                weigh(1, columns + i * r->stride, r, own, sums + i * LANES + v * WIDTH);
        }
    const sums_of_block s = {to, sums, 0, LANES, first, rows, channel, 0};
    finish(r, c, &s);
}

static void windows(const quantized_record *r, const call *c, int64_t part,
                    int64_t parts) {
    const int64_t tiles = (r->width + MOST_ROWS - 1) / MOST_ROWS;
    outputs to;
    SHARE(r->rows / r->width * r->groups);
    for (int64_t u = first; u < behind; u++) {
        const int64_t line = u / r->groups * r->width, channel = u % r->groups * LANES;
        outputs_of(r, c, channel, &to);
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t start = t * r->width / tiles, end = (t + 1) * r->width / tiles;
            window_tile(r, c, &to, channel, line + start, end - start);
        }
    }
}

void quantized(const void *record, const call *c, int64_t part, int64_t parts) {
    const quantized_record *r = record;
    const int64_t most = ROWS[r->nr], tiles = (r->rows + most - 1) / most;
    int64_t known = -1;
    outputs to;
    if (r->kernel0) {
        windows(r, c, part, parts);
        return;
    }
    SHARE(r->groups * tiles);
    for (int64_t u = first; u < behind; u++) {
        const int64_t group = u / tiles, tile = u % tiles, channel = group * r->nr * LANES;
        const int64_t start = tile * r->rows / tiles, end = (tile + 1) * r->rows / tiles;
        if (group != known) outputs_of(r, c, channel, &to);
        known = group;
        one_tile(r, c, &to, channel, start, end - start);
    }
}
