// Convolutions and matrix products: one kernel for runs of pixels that share their taps.
//
// Tiles, which conv_tile.c computes, go by groups of NR blocks of channels or by runs of
// pixels. Weights are (group of NR blocks, input, 16 NR outputs), in the order they are
// used.
#include "activation.h"
#include "call.h"
#include "conv.h"
#include "half.h"
#include "pack.h"
#include "small_panel.h"
#include "vector.h"

enum {
    ROOM = 768 << 10,  // bytes of the second-level cache for two groups' weights
    FEW = 3,           // tiles that take as long as reading their weights
    NEAR = 60 << 10,   // bytes of weights that come from the second-level cache in time
    SLICE = 13 << 10,  // bytes of weights, about, that are used by several tiles at once
    LEAST = 3,         // such tiles
    KEPT = 40 * 6 * LANES,  // floats of their sums
    RECENT = 96             // pixels whose results are in the first-level cache
};

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
        .blocks = r->blocks,
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
    if (!p->is_followed && r->width && channel + r->nr * LANES > r->width) {
        cut_tile(*p, r->width - channel);
        return;
    }
    conv_tile(p);
    if (!p->is_followed && !is_cheap(r->act)) finish(r, p->out, p->to, t->count);
}

#if WIDTH == 8
// Whether the tiles from start on, up to `end`, are of contiguous pixels of one tap.
static int are_points(const conv_record *r, const call *c, int64_t start, int64_t end) {
    if (r->half || r->nr > 1 || r->width || r->weight_step != LANES) return 0;
    const int32_t *from = at(c, r->from), *to = at(c, r->to);
    const tile *t = (const tile *)at(c, r->tiles) + start, *last = t + (end - start) - 1;
    const int32_t behind = last->first + last->count - 1, wide = behind - t->first;
    return t->n_runs == 1 && t->n_last == 1 && t->runs == last->runs
           && t->last == last->last && from[behind] - from[t->first] == wide * LANES
           && to[behind] - to[t->first] == wide * LANES;
}

// n: the weights to ask for meanwhile.
static void points_of_group(const conv_record *r, const call *c, piece *p, int64_t group,
                            int64_t start, int64_t end, const next *n) {
    const tile *t = (const tile *)at(c, r->tiles) + start, *last = t + (end - start) - 1;
    const int32_t count = last->first + last->count - t->first;
    const int32_t most = is_cheap(r->act) || count < RECENT ? count : RECENT;
    const int64_t lines = n->of.rows * n->of.row;
    const int64_t products = (most / 6 + 1) * r->blocks * LANES;
    p->t = t;
    p->is_half = (group + 1) % r->inner == 0
                 && r->of_outs <= (r->inner - 1) * LANES + LANES / 2;
    p->ahead = (asked){n->of.first, lines, 256 * lines / products + 1, n->of.row,
                       n->of.row, n->of.step - (n->of.row - 1) * LANES};
    int32_t from = ((const int32_t *)at(c, r->from))[t->first] + p->runs[t->runs].x;
    int32_t to = ((const int32_t *)at(c, r->to))[t->first];
    for (int32_t rest = count, some; rest > 0; rest -= some) {
        some = rest < most ? rest : most;
        points(p, from, to, some);
        if (!is_cheap(r->act)) finish(r, p->out + to, 0, some);
        from += some * LANES, to += some * LANES;
        p->ahead.lines = 0;
    }
}
#endif

// The blocks of a slice, whose weights stay in the first-level cache for all tiles.
// Measured with vectors of 8. Any share of the tiles has the same.
static int64_t blocks_of_slice(const conv_record *r) {
    const int64_t of_block = 4 * r->weight_step * r->nr * LANES;
    const int are_near = r->blocks * of_block <= NEAR;
    if (WIDTH != 8 || r->half || are_near || r->n_tiles < LEAST) return r->blocks;
    const int64_t slices = (r->blocks * of_block + SLICE - 1) / SLICE;
    return slices < r->blocks ? (r->blocks + slices - 1) / slices : 1;
}

// The tiles from start on, up to `end`, of a group whose weights are at w. Those of
// several slices are summed slice by slice, some tiles at a time. The weights of the
// next slice, or of the next group, are asked for while those of one are in use.
static void tiles_of_group(const conv_record *r, const call *c, int64_t group,
                           const float *w, int64_t start, int64_t end, const next *n) {
    const int64_t some = blocks_of_slice(r);
    piece of = of_group(r, c, group, w);
    if (some >= r->blocks) {
#if WIDTH == 8
        if (are_points(r, c, start, end)) {
            points_of_group(r, c, &of, group, start, end, n);
            return;
        }
#endif
        for (int64_t i = start; i < end; i++) one_tile(r, c, &of, group, i, n);
        return;
    }
    ALIGNED float kept[KEPT];
    const int64_t tile_size = tile_rows(r->nr) * r->nr * LANES, most = KEPT / tile_size;
    const int64_t of_block = r->weight_step * r->nr * LANES;
    const float *x = of.x;
    for (int64_t first = start; first < end; first += most) {
        const int64_t behind = first + most < end ? first + most : end;
        for (int64_t block = 0; block < r->blocks; block += some) {
            const int64_t rest = r->blocks - block, after_it = rest - some;
            of.follows = block > 0, of.is_followed = after_it > 0;
            of.blocks = of.is_followed ? some : rest;
            of.x = x + block * r->x_step;
            of.weight = w + block * of_block;
            next ahead = *n;
            if (of.is_followed) {
                const int64_t size = (after_it < some ? after_it : some) * of_block;
                ahead = after(r, of.weight + some * of_block, size, first, behind - first);
            }
            for (int64_t i = first; i < behind; i++) {
                of.kept = kept + (i - first) * tile_size;
                one_tile(r, c, &of, group, i, &ahead);
            }
        }
    }
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
    const int64_t slice = blocks_of_slice(r) * r->weight_step * r->nr * LANES;
    const int64_t ahead_size = slice < r->group_step ? slice : r->group_step;
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
                n = after(r, w + r->group_step, ahead_size, 0, r->n_tiles);
            else if (r->n_tiles > FEW)
                n = behind_all;
            const int64_t rest = behind - u, all = r->n_tiles - i;
            const int64_t count = rest < all ? rest : all;
            tiles_of_group(r, c, group, w, i, i + count, &n);
            u += count;
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
                n = after(r, w + r->group_step, ahead_size, start, end - start);
            if (end == behind && g + 1 == r->groups)
                n = after(r, ahead, r->ahead_step, start, end - start);
            tiles_of_group(r, c, g, w, start, end, &n);
        }
    }
}
