// Convolutions of few channels, whose maps are read as planes or with any other strides.
//
// A unit is a rectangle of results of one image. What it reads is moved to a window
// first: (channel, row, phase, place), where the columns of a phase are a stride apart,
// so that neighbours in a row of results read neighbours, and zeros are beyond the map.
// A sum then goes over all taps and channels, whose places in the window are a table.
// Weights are (group of NR blocks, tap and channel, 16 NR outputs).
#include "call.h"
#include "conv_tile.h"
#include "turn.h"

// Up to R results of a row, and NR blocks of channels.
typedef struct {
    const float *x, *weight, *bias;
    const int32_t *places;
    float *out;
    const conv_planes_record *record;
} strip;

INLINE void multiply(const int R, const int NR, const strip *p) {
    const conv_planes_record *record = p->record;
    const int n = NR * PARTS;
    const int is_short = record->sums <= SHORT;
    vec acc[MOST_PIXELS][MOST_VECTORS], sums[MOST_PIXELS][MOST_VECTORS];
    UNROLLED for (int j = 0; j < n; j++) {
        const vec b = is_short ? load(p->bias + WIDTH * j) : (vec){0};
        UNROLLED for (int r = 0; r < R; r++) acc[r][j] = b;
    }
    UNROLLED for (int j = 0; j < NR; j++) UNROLLED for (int r = 0; r < R; r++)
        __builtin_prefetch(p->out + r * LANES + j * record->out_step, 1, 3);
    const float *w = p->weight;
    const int32_t *place = p->places;
    int is_split = 0;
    for (int64_t left = record->sums; left > 0; left -= SUMMED) {
        if (left < record->sums) {
            UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++) {
                sums[r][j] = is_split ? sums[r][j] + acc[r][j] : acc[r][j];
                acc[r][j] = (vec){0};
            }
            is_split = 1;
        }
        const int32_t *end = place + (left < SUMMED ? left : SUMMED);
        for (; place < end; place++, w += NR * LANES) {
            const float *x = p->x + *place;
            vec ws[MOST_VECTORS];
            UNROLLED for (int j = 0; j < n; j++) ws[j] = weight_at(R, n, w + WIDTH * j);
            UNROLLED for (int r = 0; r < R; r++) {
                const vec s = all(x[r]);
                UNROLLED for (int j = 0; j < n; j++) acc[r][j] = s * ws[j] + acc[r][j];
            }
        }
    }
    if (is_split) {
        UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
            acc[r][j] += sums[r][j];
    }
    if (!is_short) {
        UNROLLED for (int j = 0; j < n; j++) {
            const vec b = load(p->bias + WIDTH * j);
            UNROLLED for (int r = 0; r < R; r++) acc[r][j] += b;
        }
    }
    activate_cheaply(R, n, MOST_VECTORS, acc[0], record->act, record->low, record->high);
    UNROLLED for (int r = 0; r < R; r++) UNROLLED for (int j = 0; j < n; j++)
        store(p->out + r * LANES + j / PARTS * record->out_step + j % PARTS * WIDTH,
              acc[r][j]);
}

#define STRIP(R, NR, S) \
    static void strip_##R##_##NR(const strip *p) { multiply(R, NR, p); }
#define STRIP_NAME(R, NR, S) [R][NR] = strip_##R##_##NR,
TILES(STRIP, 0)
static void (*const STRIPS[MOST_PIXELS + 1][MOST_BLOCKS + 1])(const strip *) = {
    TILES(STRIP_NAME, 0)};
static const int ROWS[MOST_BLOCKS + 1] = ROWS_OF;

// n elements that are `step` apart.
INLINE void gather(const float *restrict x, int64_t step, float *restrict y, int64_t n) {
#define APART(by) \
    case by: \
        for (int64_t i = 0; i < n; i++) y[i] = x[i * by]; \
        break;
    switch (step) {  // compilers find shuffles where they know it
        APART(1) APART(2) APART(3) APART(4) APART(6)
    default:
        for (int64_t i = 0; i < n; i++) y[i] = x[i * step];
    }
#undef APART
}

// A row of the window: x is a row of the map, whose column `left` is the window's first.
static void fill_row(const conv_planes_record *r, const float *x, int64_t left,
                     int64_t columns, float *y) {
    const int64_t step = r->stride1, last = left + (columns - 1) * step + r->span1 - 1;
    const int is_inside = left >= 0 && last < r->width;
    if (is_inside && r->x_column == 1 && r->phases >= WIDTH && r->span1 <= step) {
        turned(x + left, step, y, r->pitch, r->phases, columns);
        return;
    }
    for (int64_t phase = 0; phase < r->phases; phase++, y += r->pitch) {
        const int64_t at = left + phase, count = columns + (r->span1 - 1 - phase) / step;
        int64_t low = 0, end = count;
        if (!is_inside) {
            low = at < 0 ? (step - 1 - at) / step : 0;
            if (low > count) low = count;
            end = at < r->width ? (r->width - 1 - at) / step + 1 : 0;
            if (end > count) end = count;
            if (end < low) end = low;
            for (int64_t i = 0; i < low; i++) y[i] = 0;
            for (int64_t i = end; i < count; i++) y[i] = 0;
        }
        gather(x + (at + low * step) * r->x_column, step * r->x_column, y + low,
               end - low);
    }
}

// What `rows` times `columns` results from (row, column) on read of an image.
static void fill_window(const conv_planes_record *r, const float *x, int64_t row,
                        int64_t column, int64_t rows, int64_t columns, float *window) {
    const int64_t top = row * r->stride0 - r->before0,
                  left = column * r->stride1 - r->before1;
    const int64_t some = (rows - 1) * r->stride0 + r->span0, wide = r->phases * r->pitch;
    for (int64_t channel = 0; channel < r->channels; channel++)
        for (int64_t i = 0; i < some; i++) {
            float *y = window + (channel * r->window_rows + i) * wide;
            if (top + i < 0 || top + i >= r->height)
                memset(y, 0, 4 * (size_t)wide);
            else
                fill_row(r, x + channel * r->x_channel + (top + i) * r->x_row, left,
                         columns, y);
        }
}

void conv_planes(const void *record, const call *c, int64_t part, int64_t parts) {
    const conv_planes_record *r = record;
    const int64_t across = (r->out_width + r->unit_columns - 1) / r->unit_columns,
                  down = (r->out_height + r->unit_rows - 1) / r->unit_rows;
    const int64_t wide = r->nr * LANES;
    float *window = (float *)at(c, r->space) + part * r->room;
    SHARE(r->images * down * across);
    for (int64_t u = first; u < behind; u++) {
        const int64_t image = u / across / down;
        const int64_t row = u / across % down * r->unit_rows,
                      column = u % across * r->unit_columns;
        const int64_t below = r->out_height - row, right = r->out_width - column;
        const int64_t rows = below < r->unit_rows ? below : r->unit_rows,
                      columns = right < r->unit_columns ? right : r->unit_columns;
        fill_window(r, (const float *)at(c, r->x) + image * r->x_image, row, column, rows,
                    columns, window);
        const int64_t strips = (columns + ROWS[r->nr] - 1) / ROWS[r->nr];
        float *out = (float *)at(c, r->out)
                     + ((image * r->out_height + row) * r->out_width + column) * LANES;
        for (int64_t g = 0; g < r->groups; g++, out += r->nr * r->out_step)
            for (int64_t i = 0; i < rows; i++)
                for (int64_t s = 0; s < strips; s++) {
                    const int64_t begin = s * columns / strips,
                                  count = (s + 1) * columns / strips - begin;
                    const strip p = {
                        .x = window + i * r->stride0 * r->phases * r->pitch + begin,
                        .weight = (const float *)at(c, r->weight) + g * r->sums * wide,
                        .bias = (const float *)at(c, r->bias) + g * wide,
                        .places = at(c, r->places),
                        .out = out + (i * r->out_width + begin) * LANES,
                        .record = r,
                    };
                    STRIPS[count][r->nr](&p);
                    if (!is_cheap(r->act))
                        activate(r->act, p.out, 0, count, r->nr, r->out_step,
                                 (float)r->low, (float)r->high);
                }
    }
}
