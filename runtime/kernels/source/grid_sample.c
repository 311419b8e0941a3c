// Values of maps at coordinates of a grid, each a sum of a few neighbours' values.
#include <math.h>

#include "call.h"

enum { TILE = 128, MOST_TAPS = 16 };  // positions that go through together

// Neighbours of the positions of a tile, and their weights.
typedef struct {
    int64_t count;
    int32_t index[MOST_TAPS][TILE];
    float weight[MOST_TAPS][TILE];
} taps;

INLINE float near_cubic(float d, float a) {
    return ((a + 2) * d - (a + 3)) * d * d + 1;
}
INLINE float far_cubic(float d, float a) {
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

INLINE float reflected(float place, float low, float period) {
    if (period <= 0) return 0;
    const float twice = 2 * period, away = place - low;
    const float within = away - floorf(away / twice) * twice;
    return low + (within < twice - within ? within : twice - within);
}

// Along one axis of `size` places: 1, 2 or 4 neighbours. Whether a position is not finite.
static int along(const grid_sample_record *r, int64_t size, const float *grid, int64_t n,
                 taps *found) {
    const float most = (float)(size - 1), low = r->corners ? 0 : -.5f;
    const float scale = (r->corners ? most : (float)size) / 2, cubic = (float)r->cubic;
    const float shift = r->corners ? 0 : -.5f, period = r->corners ? most : (float)size;
    int wrong = 0;
    found->count = r->taps;
    for (int64_t i = 0; i < n; i++) {
        const float t = (grid[i * r->rank] + 1) * scale + shift;
        const float base = r->taps == 1 ? rintf(t) : floorf(t), part = t - base;
        float weight[4] = {1 - part, part, 0, 0};
        wrong |= !(t - t == 0);
        if (r->taps == 1) weight[0] = 1;
        if (r->taps == 4) {
            weight[0] = far_cubic(part + 1, cubic);
            weight[1] = near_cubic(part, cubic);
            weight[2] = near_cubic(1 - part, cubic);
            weight[3] = far_cubic(2 - part, cubic);
        }
        for (int64_t k = 0; k < r->taps; k++) {
            float place = base + (float)(k - (r->taps == 4)), inside = 1;
            if (r->padding == GRID_ZEROS)
                inside = place >= 0 && place <= most;
            else if (r->padding == GRID_REFLECTION)
                place = reflected(place, low, period);
            place = place > 0 ? place < most ? place : most : 0;
            found->index[k][i] = (int32_t)place;
            found->weight[k][i] = weight[k] * inside;
        }
    }
    return wrong;
}

// All neighbours so far with each of another axis: places are numbered in order.
static void combine(taps *all, const taps *axis, int64_t size, int64_t n) {
    for (int64_t k = all->count - 1; k >= 0; k--)
        for (int64_t j = axis->count - 1; j >= 0; j--) {
            const int64_t to = k * axis->count + j;
            for (int64_t i = 0; i < n; i++) {
                all->index[to][i] = all->index[k][i] * (int32_t)size + axis->index[j][i];
                all->weight[to][i] = all->weight[k][i] * axis->weight[j][i];
            }
        }
    all->count *= axis->count;
}

static void singles(const taps *at, const float *x, float *out, int64_t n) {
    float sum[TILE] = {0};
    for (int64_t k = 0; k < at->count; k++)
        for (int64_t i = 0; i < n; i++) sum[i] += at->weight[k][i] * x[at->index[k][i]];
    memcpy(out, sum, 4 * (size_t)n);
}

static void blocks(const taps *at, const float *x, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < LANES; j += WIDTH) {
            vec sum = {0};
            for (int64_t k = 0; k < at->count; k++)
                sum += at->weight[k][i] * load(x + (int64_t)at->index[k][i] * LANES + j);
            store(out + i * LANES + j, sum);
        }
}

// x (images, channels, places), or in blocks of channels; grid (images, positions, rank).
void grid_sample(const void *record, const call *c, int64_t part, int64_t parts) {
    const grid_sample_record *r = record;
    const int64_t sizes[] = {r->size0, r->size1, r->size2};
    const int64_t lanes = r->is_blocked ? LANES : 1;
    const int64_t tiles = (r->positions + TILE - 1) / TILE;
    taps all, axis;
    SHARE(r->images * tiles);
    for (int64_t u = first; u < behind; u++) {
        const int64_t image = u / tiles, start = u % tiles * TILE;
        const int64_t n = r->positions - start < TILE ? r->positions - start : TILE;
        const float *grid =
            (const float *)at(c, r->grid) + (image * r->positions + start) * r->rank;
        int wrong = along(r, sizes[3 - r->rank], grid + r->rank - 1, n, &all);
        for (int64_t i = 1; i < r->rank; i++) {
            const int64_t size = sizes[3 - r->rank + i];
            wrong |= along(r, size, grid + r->rank - 1 - i, n, &axis);
            combine(&all, &axis, size, n);
        }
        if (wrong) {
            *(int64_t *)at(c, r->fault) = 1;
            return;
        }
        const float *x = (const float *)at(c, r->x) + image * r->x_image;
        float *out = (float *)at(c, r->out) + image * r->out_image + start * lanes;
        for (int64_t k = 0; k < r->channels; k++) {
            (r->is_blocked ? blocks : singles)(&all, x + k * r->x_channel,
                                               out + k * r->out_channel, n);
        }
    }
}
