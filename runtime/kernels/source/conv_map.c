// Convolutions of maps as NumPy has them, (N, C, *S), and their gradient to the input.
//
// Both are products of weights (rows) with the elements that taps read at some places,
// which are gathered a block at a time. Of a stride's phases, each is such a product with
// its own taps.
#include "gather.h"

enum {
    MR = WIDTH == 16 ? 12 : 6,            // rows of a panel of weights
    NP = 2 * WIDTH,                       // places of a panel
    DEPTH = BLOCKING_DEPTH,               // products that are summed at a time
    PLACES = BLOCKING_PANELS * 2 * WIDTH  // of a block
};

// weight as (group, panel of MR rows, channel, tap, MR), zeros behind the last row.
void conv_pack(const void *record, const call *c, int64_t part, int64_t parts) {
    const conv_pack_record *r = record;
    const int32_t *taps = at(c, r->taps);
    const int64_t panels = (r->rows + MR - 1) / MR, n = r->n_taps;
    SHARE(r->groups * panels);
    for (int64_t u = first; u < behind; u++) {
        const int64_t row = u % panels * MR;
        const int64_t some = r->rows - row < MR ? r->rows - row : MR;
        const float *from = (const float *)at(c, r->weight) + u / panels * r->group_step
                            + row * r->row_step;
        float *to = (float *)at(c, r->out) + u * r->channels * n * MR;
        for (int64_t k = 0; k < r->channels; k++, from += r->channel_step)
            for (int64_t t = 0; t < n; t++, to += MR) {
                const float *w = from + taps[t];
                for (int64_t i = 0; i < some; i++) to[i] = w[i * r->row_step];
                for (int64_t i = some; i < MR; i++) to[i] = 0;
            }
    }
}

// sums (MR, NP), added to unless it is the first block: weights (depth, MR) times
// elements (depth, NP).
INLINE void multiply(const float *w, const float *x, int64_t depth, float *sums,
                     int is_first) {
    vec acc[MR][2];
    UNROLLED for (int i = 0; i < MR; i++) UNROLLED for (int v = 0; v < 2; v++)
        acc[i][v] = is_first ? (vec){0} : load(sums + i * NP + v * WIDTH);
    for (int64_t k = 0; k < depth; k++, w += MR, x += NP) {
        const vec a = load(x), b = load(x + WIDTH);
        UNROLLED for (int i = 0; i < MR; i++) {
            const vec s = all(w[i]);
            acc[i][0] += s * a;
            acc[i][1] += s * b;
        }
    }
    UNROLLED for (int i = 0; i < MR; i++) UNROLLED for (int v = 0; v < 2; v++)
        store(sums + i * NP + v * WIDTH, acc[i][v]);
}

typedef struct {
    int32_t *index, *kinds, *coordinates;
    float *elements, *sums;
} room;

static void collect(const room *s, const float *x, int64_t n_taps, int64_t plane,
                    int64_t from, int64_t depth, int64_t panels) {
    for (int64_t p = 0; p < panels; p++) {
        float *to = s->elements + p * DEPTH * NP;
        int64_t t = from % n_taps;
        const float *map = x + from / n_taps * plane;
        for (int64_t k = 0; k < depth; k++, to += NP) {
            const int32_t *index = s->index + t * PLACES + p * NP;
            const int32_t *kind = s->kinds + t * (PLACES / WIDTH) + p * 2;
            store(to, gathered(map, index, kind[0]));
            store(to + WIDTH, gathered(map, index + WIDTH, kind[1]));
            if (++t == n_taps) t = 0, map += plane;
        }
    }
}

static void write_out(const conv_map_record *r, const grid *g, const room *s,
                      const float *bias, float *out, int64_t start, int64_t row,
                      int64_t rows, int64_t panels, places q) {
    const int64_t count = r->batch * r->place0 * r->place1 * r->place2;
    for (int64_t p = 0; p < panels; p++)
        for (int64_t v = 0; v < 2; v++) {
            const int64_t j = p * NP + v * WIDTH, left = count - start - j;
            const int64_t some = left < WIDTH ? left : WIDTH;
            int64_t to[WIDTH];
            for (int64_t i = 0; i < some; i++)
                to[i] = q.image[j + i] / g->image * r->out_image
                        + q.at[0][j + i] * r->to0 + q.at[1][j + i] * r->to1
                        + q.at[2][j + i] * r->to2;
            int are_beside = some == WIDTH;
            for (int64_t i = 1; i < some; i++) are_beside &= to[i] == to[0] + i;
            for (int64_t i = 0; i < rows; i++) {
                const float *sum = s->sums + (p * r->room_rows + i) * NP + v * WIDTH;
                const float shift = bias ? bias[row + i] : 0;
                float *plane = out + (row + i) * r->out_plane;
                if (are_beside) {
                    store(plane + to[0], load(sum) + shift);
                    continue;
                }
                for (int64_t l = 0; l < some; l++) plane[to[l]] = sum[l] + shift;
            }
        }
}

static places coordinates_in(int32_t *space, int64_t count) {
    return (places){space, {space + count, space + 2 * count, space + 3 * count}};
}

// Shares are groups, blocks of places, and parts of the rows.
void conv_map(const void *record, const call *c, int64_t part, int64_t parts) {
    const conv_map_record *r = record;
    const grid g = GRID_OF(r, at(c, r->taps));
    const int64_t count = r->batch * r->place0 * r->place1 * r->place2;
    const int64_t blocks = (count + PLACES - 1) / PLACES, depth = r->channels * r->n_taps;
    const int64_t row_panels = (r->rows + MR - 1) / MR;
    char *space = (char *)at(c, r->space) + part * r->room;
    room s = {.elements = (float *)space};
    s.sums = s.elements + BLOCKING_PANELS * DEPTH * NP;
    s.index = (int32_t *)(s.sums + BLOCKING_PANELS * r->room_rows * NP);
    s.kinds = s.index + r->n_taps * PLACES;
    s.coordinates = s.kinds + r->n_taps * (PLACES / WIDTH);
    const places q = coordinates_in(s.coordinates, PLACES);
    SHARE(r->groups * blocks * r->splits);
    for (int64_t u = first; u < behind; u++) {
        const int64_t group = u / r->splits / blocks, split = u % r->splits;
        const int64_t start = u / r->splits % blocks * PLACES;
        const int64_t low = row_panels * split / r->splits,
                      high = row_panels * (split + 1) / r->splits;
        const int64_t left = count - start < PLACES ? count - start : PLACES;
        const int64_t panels = (left + NP - 1) / NP;
        find_places(&g, start, panels * NP, q);
        for (int64_t t = 0; t < r->n_taps; t++)
            find_elements(&g, t, panels * NP, q, s.index + t * PLACES,
                          s.kinds + t * (PLACES / WIDTH));
        const float *x = (const float *)at(c, r->x) + group * r->channels * r->plane;
        const float *w = (const float *)at(c, r->weight) + group * row_panels * depth * MR;
        if (!depth) memset(s.sums, 0, sizeof(float) * BLOCKING_PANELS * r->room_rows * NP);
        for (int64_t k = 0; k < depth; k += DEPTH) {
            const int64_t some = depth - k < DEPTH ? depth - k : DEPTH;
            collect(&s, x, r->n_taps, r->plane, k, some, panels);
            for (int64_t m = low; m < high; m++)
                for (int64_t p = 0; p < panels; p++)
                    multiply(w + (m * depth + k) * MR, s.elements + p * DEPTH * NP, some,
                             s.sums + (p * r->room_rows + (m - low) * MR) * NP, k == 0);
        }
        const float *bias = at(c, r->bias);
        const int64_t end = high * MR < r->rows ? high * MR : r->rows;
        write_out(r, &g, &s, bias ? bias + group * r->rows : 0,
                  (float *)at(c, r->out) + group * r->rows * r->out_plane + r->out_start,
                  start, low * MR, end - low * MR, panels, q);
    }
}
