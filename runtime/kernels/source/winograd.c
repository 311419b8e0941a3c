// Convolutions of 3 x 3 taps by Winograd's algorithm F(2 x 2, 3 x 3).
//
// Four places of the result, from 4 x 4 of the input: Y = A'[(G g G') * (B' d B)]A, with
// 16 products for each pair of channels instead of 36. Inputs and results are moved by
// sums alone, so that numbers round no more than a direct sum of as many products; but
// NaN and infinity spread over a tile: `fault`, where there is one, reports them, and the
// caller falls back. The 16 products of all channels are those of a matrix, by conv.c's
// tiles.
//
// A chunk of tiles: its inputs as (16, block of channels, tile, LANES), its products as
// (16, block of a group, tile, LANES), a cache line more between the 16.
#include "activation.h"
#include "call.h"
#include "conv.h"
#include "winograd.h"

// A'm A: four places of the result, LANES apart.
INLINE void turn_output(const float *m, int64_t apart, vec bias, vec *y) {
    vec s[2][4];
    UNROLLED for (int j = 0; j < 4; j++) {
        const float *p = m + j * apart;
        const vec a = load(p), c = load(p + 8 * apart), e = load(p + 12 * apart);
        vec b = load(p + 4 * apart);
        if (j == 1) b += bias;  // all four have this one
        s[0][j] = a + b + c, s[1][j] = b - c - e;
    }
    UNROLLED for (int i = 0; i < 2; i++) {
        y[2 * i] = s[i][0] + s[i][1] + s[i][2];
        y[2 * i + 1] = s[i][1] - s[i][2] - s[i][3];
    }
}

typedef struct {
    const winograd_record *record;
    grid grid;
    int64_t first, count;  // tiles of the chunk
    float *inputs, *products;
    int64_t input_apart, product_apart;
} chunk;

static void multiply(const chunk *k, const float *weight) {
    static const float no_bias[MOST_BLOCKS * LANES];
    static const int32_t to[MOST_PIXELS] = {0,   16,  32,  48,  64,  80,  96,
                                            112, 128, 144, 160, 176, 192, 208};
    const winograd_record *r = k->record;
    const run runs[2] = {{0, 0, LANES}, {0, 0, (int32_t)(r->ins - (r->blocks - 1) * LANES)}};
    const conv_record record = {.blocks = r->blocks, .nr = r->nr, .weight_step = LANES,
                                .x_step = k->count * LANES, .out_step = k->count * LANES};
    const int64_t parts = (k->count + tile_rows(r->nr) - 1) / tile_rows(r->nr);
    for (int64_t place = 0; place < PLACES; place++)
        for (int64_t i = 0; i < parts; i++) {
            const int64_t low = k->count * i / parts, high = k->count * (i + 1) / parts;
            const tile t = {0, (int32_t)(high - low), LANES, 0, 1, 1, 1};
            conv_tile(&(piece){
                .x = k->inputs + place * k->input_apart + low * LANES,
                .weight = weight + place * r->ins * r->nr * LANES,
                .bias = no_bias,
                .out = k->products + place * k->product_apart + low * LANES,
                .blocks = record.blocks,
                .from = to, .to = to, .runs = runs, .t = &t, .record = &record});
        }
}

// Results of one block of channels; NaN and infinity are noted in `bad`.
static void give(const chunk *k, const float *products, const float *bias,
                 const float *residual, float *out, vec *bad) {
    const winograd_record *r = k->record;
    const int64_t plane = r->out_height * r->out_width * LANES;
    for (int64_t t = 0; t < k->count; t++) {
        const corner at = corner_of(&k->grid, k->first + t);
        const int64_t place = at.image * plane + (at.y * r->out_width + at.x) * LANES;
        float aside[4 * LANES];
        for (int v = 0; v < LANES; v += WIDTH) {
            vec y[4];
            turn_output(products + t * LANES + v, k->product_apart, load(bias + v), y);
            UNROLLED for (int i = 0; i < 4; i++) {
                *bad += y[i] * 0.f;
                const int64_t down = i / 2, right = i % 2;
                if (at.y + down >= r->out_height || at.x + right >= r->out_width) continue;
                const int64_t to = place + (down * r->out_width + right) * LANES + v;
                if (residual) y[i] += load(residual + to);
            }
            activate_cheaply(1, 4, 0, y, r->act, r->low, r->high);
            UNROLLED for (int i = 0; i < 4; i++) store(aside + i * LANES + v, y[i]);
        }
        if (!is_cheap(r->act))
            activate(r->act, aside, 0, 4, 1, 0, (float)r->low, (float)r->high);
        for (int64_t i = 0; i < 4; i++) {
            const int64_t down = i / 2, right = i % 2;
            if (at.y + down >= r->out_height || at.x + right >= r->out_width) continue;
            memcpy(out + place + (down * r->out_width + right) * LANES, aside + i * LANES,
                   4 * LANES);
        }
    }
}

// Units are chunks of tiles, and of each one parts of the groups of channels.
void winograd(const void *record, const call *c, int64_t part, int64_t parts) {
    const winograd_record *r = record;
    const int64_t tiles = r->images * r->rows * r->columns;
    const int64_t chunks = (tiles + r->chunk - 1) / r->chunk;
    float *space = (float *)at(c, r->space) + part * r->room;
    chunk k = {.record = r, .inputs = space, .first = -1,
               .grid = {r->height, r->width, r->before0, r->before1, r->rows, r->columns}};
    vec bad = {0};
    SHARE(chunks * r->splits);
    for (int64_t u = first; u < behind; u++) {
        const int64_t start = tiles * (u / r->splits) / chunks, split = u % r->splits;
        if (start != k.first) {
            k.first = start;
            k.count = tiles * (u / r->splits + 1) / chunks - start;
            k.input_apart = r->blocks * k.count * LANES + GAP;
            k.product_apart = r->nr * k.count * LANES + GAP;
            k.products = k.inputs + PLACES * k.input_apart;
            const float *x = at(c, r->x);
            for (int64_t b = 0; b < r->blocks; b++)
                turn_inputs(&k.grid, x + b * r->x_step, k.first, k.count,
                            k.inputs + b * k.count * LANES, k.input_apart);
        }
        for (int64_t g = r->groups * split / r->splits;
             g < r->groups * (split + 1) / r->splits; g++) {
            multiply(&k, (const float *)at(c, r->weight)
                             + g * PLACES * r->ins * r->nr * LANES);
            for (int64_t j = 0; j < r->nr; j++) {
                const int64_t block = g * r->nr + j;
                const float *residual = at(c, r->residual);
                give(&k, k.products + j * k.count * LANES,
                     (const float *)at(c, r->bias) + block * LANES,
                     residual ? residual + block * r->out_step : 0,
                     (float *)at(c, r->out) + block * r->out_step, &bad);
            }
        }
    }
    const float total = sum_of(bad);
    if (total != total && r->fault >= 0) *(int64_t *)at(c, r->fault) = 1;
}
