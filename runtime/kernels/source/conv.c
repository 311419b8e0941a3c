// Convolutions and matrix products: one kernel for runs of pixels that share their taps.
//
// A tile is up to R pixels (or rows of a matrix) times NR blocks of 16 channels, held in
// registers. For each block of input channels it goes through runs: stretches of the
// input that are contiguous in memory for every pixel, so that padding is never read.
// Weights are (group of NR blocks, input, 16 NR outputs), in the order they are used.
#include "call.h"
#include "conv_tile.h"
#include "half.h"
#include "pack.h"
#include "small_panel.h"

enum {
    ROOM = 768 << 10,  // bytes of the second-level cache for two groups' weights
    AHEAD = 1024,      // of weights: floats that are asked for before they are used
    SHORT = 32,        // products of a sum that begins with the bias
    SUMMED = 192,      // products, about, that are summed one by one; such sums apart
    ASKED = 32,        // products for which lines of the next weights are asked for at once
    TOGETHER = 4,      // blocks of one run each in one loop, whose end costs a few products
    CROWDED = 9,       // pixels with a pointer each that leave registers for the rest
    LONG = 128,        // products of one pixel whose halves are summed side by side
    FEW = 3            // tiles that take as long as reading their weights
};

// Of `multiply`: the weights at w times a number of each row r. Macros, as compilers keep
// accumulators that a function is given in memory.
#define ADD_PRODUCTS(number)                                                         \
    {                                                                                \
        vec ws[MOST_VECTORS];                                                        \
        UNROLLED for (int j = 0; j < n; j++) ws[j] = weight_at(R, n, w + WIDTH * j); \
        if (R > 2) { /* with fewer rows it costs more than it saves */               \
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
    int is_split = 0;
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
    ask_for_results(R, NR, p);
    // Blocks of one run each, as those of one tap: a loop goes from one to the next one.
    const run *only = p->runs + p->t->runs;
    if (stride && p->t->n_runs == 1 && only->length == LANES
        && record->weight_step == LANES) {
        const int64_t whole = record->blocks - (p->t->last != p->t->runs);
        const float *from = x + only->x + p->from[0];
        const float *w = weight + (int64_t)only->weight * (NR * LANES);
        while (block < whole) {
            if (left <= 0) SUM_APART
            const int64_t some = whole - block < TOGETHER ? whole - block : TOGETHER;
            left -= some * LANES;
            ask_ahead(&ahead, some * LANES);
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
    for (; block < record->blocks; block++) {
        const int is_last = block == record->blocks - 1;
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
    if (!is_short) add_bias(R, NR, acc, p);
    leave(R, NR, acc, p);
}

DEFINE_TILES

static const int ROWS[MOST_BLOCKS + 1] = ROWS_OF;

void conv_tile(const piece *p) {
#if HAS_BF16
    if (p->record->half) {
        conv_tile_half(p);
        return;
    }
#endif
    KERNELS[p->t->stride == LANES][p->t->count][p->record->nr](p);
}

int64_t tile_rows(int64_t blocks) { return blocks <= MOST_BLOCKS ? ROWS[blocks] : 0; }

// Weights to bring into the second-level cache, `each` lines by a tile from `first` on,
// `pace` for 256 products.
typedef struct {
    lines of;
    int64_t first, each, pace;
} next;

static next spread(lines of, int64_t first, int64_t tiles, int64_t pace) {
    return (next){of, first, (of.rows * of.row + tiles - 1) / tiles, pace};
}

// weight: of `size` floats, read after `count` tiles from `first` on.
static next after(const conv_record *r, const float *weight, int64_t size, int64_t first,
                  int64_t count) {
    const int64_t some = 8 * size > ROOM ? 1 : count;
    const lines of = {weight, weight ? 1 : 0, size / LANES, 0};
    return spread(of, first + count - some, some, 256 * r->nr / some + 1);
}

static void finish(const conv_record *r, float *out, const int32_t *to, int64_t rows) {
    activate(r->act, out, to, rows, r->nr, r->out_step, (float)r->low, (float)r->high);
}

// A tile whose last channels are beyond a row's end: computed aside, and cut off.
static void cut_tile(piece p, int64_t width) {
    conv_record record = *p.record;
    const int64_t rows = p.t->count, wide = record.nr * LANES;
    float out[MOST_PIXELS * MOST_BLOCKS * LANES], residual[sizeof out / sizeof *out];
    int32_t to[MOST_PIXELS];
    for (int64_t i = 0; i < rows; i++) to[i] = (int32_t)(i * wide);
    if (p.residual) {
        memset(residual, 0, sizeof residual);
        for (int64_t i = 0; i < rows; i++)
            memcpy(residual + i * wide, p.residual + p.to[i], 4 * (size_t)width);
    }
    piece aside = p;
    record.out_step = LANES;
    aside.record = &record;
    aside.out = out;
    aside.to = to;
    aside.residual = p.residual ? residual : 0;
    conv_tile(&aside);
    if (!is_cheap(record.act)) finish(&record, out, to, rows);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < width; k += WIDTH)
            store_up_to(p.out + p.to[i] + k, load(out + i * wide + k), width - k);
}

// What all tiles of a group share. weight: packed.
static piece of_group(const conv_record *r, const call *c, int64_t group,
                      const float *weight) {
    const int64_t outer = group / r->inner, inner = group % r->inner;
    const int64_t out_of_group = outer * r->outer_out + inner * r->nr * r->out_step;
    const float *residual = at(c, r->residual);
    return (piece){
        .x = (const float *)at(c, r->x) + outer * r->outer_x,
        .weight = weight,
        .bias = (const float *)at(c, r->bias) + group * r->nr * LANES,
        .residual = residual ? residual + out_of_group : 0,
        .out = (float *)at(c, r->out) + out_of_group,
        .runs = at(c, r->runs),
        .record = r,
    };
}

// p: its group's, whose fields of a tile are written here: a copy of one that has just
// been written waits for it. n: the weights that are read after all tiles.
static void one_tile(const conv_record *r, const call *c, piece *p, int64_t group,
                     int64_t i, const next *n) {
    const tile *t = (const tile *)at(c, r->tiles) + i;
    p->t = t;
    p->from = (const int32_t *)at(c, r->from) + t->first;
    p->to = (const int32_t *)at(c, r->to) + t->first;
    p->ahead.lines = 0;
    if (n->of.rows && i >= n->first) {
        const int64_t low = n->each * (i - n->first), rest = n->of.rows * n->of.row - low;
        const int64_t row = n->of.rows > 1 ? low / n->of.row : 0;
        const int64_t in_row = low - row * n->of.row;
        p->ahead.at = n->of.first + row * n->of.step + in_row * LANES;
        p->ahead.lines = rest < n->each ? rest : n->each;
        p->ahead.pace = n->pace;
        p->ahead.row = n->of.row;
        p->ahead.left = n->of.row - in_row;
        p->ahead.jump = n->of.step - (n->of.row - 1) * LANES;
    }
    const int64_t channel = group * r->nr * LANES;
    if (r->width && channel + r->nr * LANES > r->width) {
        cut_tile(*p, r->width - channel);
        return;
    }
    conv_tile(p);
    if (!is_cheap(r->act)) finish(r, p->out, p->to, t->count);
}

static pack_record packing(const conv_record *r) {
    return (pack_record){
        .groups = r->groups / r->inner,
        .outs = r->of_outs,
        .ins = r->of_ins,
        .taps = r->of_taps,
        .wide = r->nr * LANES,
        .depth = r->of_depth,
        .group_step = r->of_group_step,
        .out_step = r->of_out_step,
        .in_step = r->of_in_step,
        .half = r->half,
    };
}

// A share's tiles, with weights that are packed here, a group at a time: they are in
// cache then. The next group's are asked for while a group's tiles are computed.
static void packed_tiles(const conv_record *r, const call *c, int64_t part, int64_t first,
                         int64_t behind) {
    const pack_record pack = packing(r);
    const float *weight = at(c, r->unpacked);
    const small_weights small = {
        at(c, r->unpacked), at(c, r->scales), at(c, r->zeros),
        r->of_mode == GEMV_DOTS8 ? 8 : 4, r->of_outs, r->of_ins, r->of_block,
        r->nr * LANES,
    };
    float *space = (float *)at(c, r->space) + part * r->room;
    int64_t group = first / r->n_tiles, i = first % r->n_tiles;
    for (int64_t u = first; u < behind; group++, i = 0) {
        if (r->of_block) {
            small_panel(&small, group, space);
#if HAS_BF16
            if (r->half) pair_rows(space, r->of_ins, r->nr * LANES);
#endif
        } else
            pack_panel(&pack, weight, group, space);
        next n = {0};
        if ((group + 1) * r->n_tiles < behind && !r->of_block) {
            const lines of = panel_lines(&pack, weight, group + 1);
            const int64_t products = r->of_ins * r->of_taps * r->n_tiles;
            n = spread(of, 0, r->n_tiles, 256 * of.rows * of.row / products + 1);
        }
        piece of = of_group(r, c, group, space);
        for (; i < r->n_tiles && u < behind; i++, u++) one_tile(r, c, &of, group, i, &n);
    }
}

// by_group: shares are groups of channels; else runs of tiles, `chunk` at a time, so
// that their input stays in cache for all groups. The weights that are read next, of
// the next group or of the next convolution, are asked for in time: not by few tiles,
// which wait for their own.
void conv(const void *record, const call *c, int64_t part, int64_t parts) {
    const conv_record *r = record;
    const float *weight = at(c, r->weight), *ahead = at(c, r->ahead);
    if (ahead) ahead += r->ahead_groups * part / parts * r->ahead_step;
    const next behind_all = after(r, ahead, r->ahead_step, 0, r->n_tiles);
    if (r->by_group) {
        SHARE(r->groups * r->n_tiles);
        if (r->unpacked >= 0) {
            packed_tiles(r, c, part, first, behind);
            return;
        }
        const int64_t last = (behind - 1) / r->n_tiles;
        int64_t group = first / r->n_tiles, i = first % r->n_tiles;
        for (int64_t u = first; u < behind; group++, i = 0) {
            const float *w = weight + group * r->group_step;
            next n = {0};
            if (r->n_tiles > FEW && group < last)
                n = after(r, w + r->group_step, r->group_step, 0, r->n_tiles);
            else if (r->n_tiles > FEW)
                n = behind_all;
            piece of = of_group(r, c, group, w);
            for (; i < r->n_tiles && u < behind; i++, u++) one_tile(r, c, &of, group, i, &n);
        }
        return;
    }
    SHARE(r->n_tiles);
    for (int64_t start = first; start < behind; start += r->chunk) {
        int64_t end = start + r->chunk < behind ? start + r->chunk : behind;
        for (int64_t g = 0; g < r->groups; g++) {
            const float *w = weight + g * r->group_step;
            next n = {0};
            if (start == first && g + 1 < r->groups)
                n = after(r, w + r->group_step, r->group_step, start, end - start);
            if (end == behind && g + 1 == r->groups)
                n = after(r, ahead, r->ahead_step, start, end - start);
            piece of = of_group(r, c, g, w);
            for (int64_t i = start; i < end; i++) one_tile(r, c, &of, g, i, &n);
        }
    }
}
