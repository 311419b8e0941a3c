// One tile of a convolution or a product: up to R pixels (or rows of a matrix) times NR
// blocks of 16 channels, held in registers.
//
// For each block of input channels it goes through runs: stretches of the input that
// are contiguous in memory for every pixel, so that padding is never read.
#include "conv_tile.h"
#include "half.h"

enum {
    AHEAD = 1024,      // of weights: floats that are asked for before they are used
    ASKED = 32,        // products for which lines of the next weights are asked for at once
    TOGETHER = WIDTH == 8 ? 1 : 4,  // blocks of one run each in one loop
    CROWDED = 9,       // pixels with a pointer each that leave registers for the rest
    LONG = 128         // products of one pixel whose halves are summed side by side
};

// Of `multiply`: the weights at w times a number of each row r. Macros, as compilers keep
// accumulators that a function is given in memory.
#define ADD_PRODUCTS(number)                                                         \
    {                                                                                \
        vec ws[MOST_VECTORS];                                                        \
        UNROLLED for (int j = 0; j < n; j++) ws[j] = weight_at(R, n, w + WIDTH * j); \
        if (R > 2 && WIDTH != 8) { /* costs more than it saves with fewer products */ \
            UNROLLED for (int j = 0; j < NR; j++)                                    \
                __builtin_prefetch(w + AHEAD + j * LANES, 0, 3);                     \
        }                                                                            \
        UNROLLED for (int r = 0; r < R; r++) {                                       \
            vec s = all(number);                                                     \
            UNROLLED for (int j = 0; j < n; j++) acc[r][j] = s * ws[j] + acc[r][j];  \
        }                                                                            \
    }

// Compilers keep one of them in memory else, in a loop that has registers for all.
#define KEEP_SUMS                                                                    \
    {                                                                                \
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)    \
            acc[r][j] = in_register(acc[r][j]);                                      \
    }

// Add the accumulators to sums of their own, and begin anew.
#define SUM_APART                                                                    \
    {                                                                                \
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++) {  \
            sums[r][j] = is_split ? sums[r][j] + acc[r][j] : acc[r][j];              \
            acc[r][j] = (vec){0};                                                    \
        }                                                                            \
        left = SUMMED, is_split = 1;                                                 \
    }

// Products of one run, of pixels that are equally far apart: three of them share a
// pointer, as there are not registers for a pointer each.
#define ADD_EVEN_PRODUCTS(count)                                                     \
    {                                                                                \
        const float *third[(MOST_PIXELS + 2) / 3];                                   \
        UNROLLED for (int r = 0; r < R; r += 3) third[r / 3] = at[0] + r * pitch + k;\
        for (int64_t i = 0; i < (count); i++, w += NR * LANES) {                     \
            ADD_PRODUCTS(third[r / 3][r % 3 * pitch])                                \
            UNROLLED for (int r = 0; r < R; r += 3) third[r / 3]++;                  \
        }                                                                            \
        k += (count);                                                                \
    }

// stride: floats from a pixel's input to the next one's; 0 where a table gives them.
INLINE void multiply(const int R, const int NR, const int stride, const piece *p) {
    const conv_record *record = p->record;
    const int n = NR * PARTS;
    vec acc[MOST_PIXELS][MOST_VECTORS], sums[MOST_PIXELS][MOST_VECTORS];
    int64_t left = SUMMED;
    asked ahead = p->ahead;
    int is_split = p->follows;
    if (is_split) {
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
            sums[r][j] = load(p->kept + (r * n + j) * WIDTH);
    }
    // A sum of many products errs as its own size does: a bias is added to it behind them.
    const int is_short = record->blocks == 1 && p->t->n_last == 1
                         && p->runs[p->t->last].length <= SHORT;
    UNROLLED for (int j = 0; j < n; j++) {
        const vec b = is_short ? load(p->bias + WIDTH * j) : (vec){0};
        UNROLLED for (int r = 0; r < R; r++) acc[r][j] = b;
    }
    const float *x = p->x, *weight = p->weight;
    const int64_t pitch = p->t->stride;
    int64_t block = 0;
    if (!p->is_followed) ask_for_results(R, NR, p);
    // Blocks of one run each, as those of one tap: a loop goes from one to the next one.
    const run *only = p->runs + p->t->runs;
    if (stride && p->t->n_runs == 1 && only->length == LANES
        && record->weight_step == LANES) {
        const int64_t whole = p->blocks - (!p->is_followed && p->t->last != p->t->runs);
        const float *from = x + only->x + p->from[0];
        const float *w = weight + (int64_t)only->weight * (NR * LANES);
        while (block < whole) {
            if (left <= 0) SUM_APART
            const int64_t some = whole - block < TOGETHER ? whole - block : TOGETHER;
            left -= some * LANES;
            ask_ahead(&ahead, some * LANES);
            if (R > 2 && WIDTH == 8 && block + 2 < p->blocks)
                ask_for_block(R, stride, from + 2 * record->x_step);
            KEEP_SUMS
            for (int64_t k = 1; k <= some * LANES; k++, w += NR * LANES) {
                ADD_PRODUCTS(from[r * stride])
                from += k % LANES ? 1 : record->x_step - (LANES - 1);
            }
            block += some;
        }
        x += block * record->x_step;
        weight += block * (NR * LANES * LANES);
    }
    for (; block < p->blocks; block++) {
        const int is_last = !p->is_followed && block == p->blocks - 1;
        const run *runs = p->runs + (is_last ? p->t->last : p->t->runs);
        const run *end = runs + (is_last ? p->t->n_last : p->t->n_runs);
        for (; runs < end; runs++) {
            const float *at[MOST_PIXELS];
            UNROLLED for (int r = 0; r < R; r++)
                at[r] = x + runs->x + (stride ? p->from[0] + r * stride : p->from[r]);
            const float *w = weight + (int64_t)runs->weight * (NR * LANES);
            int64_t k = 0;
            // One pixel's sums wait for each other, and its weights for memory: two
            // halves are twice as many sums, and are read as two streams.
            if (R == 1 && 2 * n <= REGISTERS / 2 && runs->length >= LONG) {
                const int64_t half = runs->length / 2;
                const float *far = w + half * (NR * LANES);
                vec other[MOST_VECTORS] = {{0}};
                while (k < half) {
                    const int64_t until = half - k < SUMMED ? half : k + SUMMED;
                    for (; k < until; k++, w += NR * LANES, far += NR * LANES) {
                        const vec s = all(at[0][k]), t = all(at[0][half + k]);
                        UNROLLED for (int j = 0; j < n; j++) {
                            acc[0][j] = s * load(w + WIDTH * j) + acc[0][j];
                            other[j] = t * load(far + WIDTH * j) + other[j];
                        }
                    }
                    UNROLLED for (int j = 0; j < n; j++) {
                        acc[0][j] += other[j];
                        other[j] = (vec){0};
                    }
                    SUM_APART
                }
                k = 2 * half, w = far;
            }
            while (k < runs->length) {
                if (left <= 0) SUM_APART
                const int64_t rest = runs->length - k;
                const int64_t until = k + (rest < SUMMED ? rest : SUMMED);
                left -= until - k;
                while (k < until) {
                    const int64_t some = until - k < ASKED ? until - k : ASKED;
                    ask_ahead(&ahead, some);
                    if (!stride && NR == 1 && R > CROWDED && pitch)
                        ADD_EVEN_PRODUCTS(some)
                    else for (const int64_t end = k + some; k < end; k++, w += NR * LANES)
                        ADD_PRODUCTS(stride ? at[0][r * stride + k] : at[r][k])
                }
            }
        }
        x += record->x_step;
        weight += record->weight_step * (NR * LANES);
    }
    if (is_split) {
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
            acc[r][j] += sums[r][j];
    }
    if (p->is_followed) {
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
            store(p->kept + (r * n + j) * WIDTH, acc[r][j]);
        return;
    }
    if (!is_short) add_bias(R, n, acc, p);
    leave(R, n, acc, p, 0, p->to);
}

DEFINE_TILES

static const int ROWS[MOST_BLOCKS + 1] = ROWS_OF;

// Whether a tile is of rows of a matrix: of many numbers in one run.
INLINE int is_of_rows(const piece *p) {
    return p->record->blocks == 1 && p->t->stride && p->t->n_last == 1
           && p->runs[p->t->last].length > SHORT;
}

void conv_tile(const piece *p) {
#if WIDTH == 8
    if (is_of_rows(p)) {
        row_tile(p);
        return;
    }
#endif
#if HAS_BF16
    if (p->record->half) {
        conv_tile_half(p);
        return;
    }
#endif
    KERNELS[p->t->stride == LANES][p->t->count][p->record->nr](p);
}

int64_t tile_rows(int64_t blocks) { return blocks <= MOST_BLOCKS ? ROWS[blocks] : 0; }
