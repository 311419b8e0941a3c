// Matrix-vector products: each weight is read once, from where the parameter has it.
//
// Time is that of reading the weights, so they are not packed as floats: rows of outputs
// (outs, ins), rows of inputs (ins, outs), or small numbers with a scale for each block
// along a row, which become floats in registers. Of 4-bit numbers a byte has those at i
// and i + 16 of 32, with 8 added.
#include "activation.h"
#include "call.h"

enum { SUMMED = 128, SMALL = 32, DEEP = 8 };

typedef uint8_t bytes __attribute__((vector_size(WIDTH)));
typedef int8_t chars __attribute__((vector_size(WIDTH)));

INLINE vec from_chars(const int8_t *p) {
    chars v;
    memcpy(&v, p, WIDTH);
    return __builtin_convertvector(v, vec);
}
INLINE vec from_bytes(const uint8_t *p, int shift) {
    bytes v;
    memcpy(&v, p, WIDTH);
    return __builtin_convertvector((__builtin_convertvector(v, ivec) >> shift) & 15, vec);
}

// Some rows of float weights times x; sums of SUMMED products a lane at most.
INLINE void float_rows(const int R, const float *x, const float *w, int64_t n, float *y) {
    vec sum[4], part[4];
    UNROLLED for (int r = 0; r < R; r++) sum[r] = (vec){0};
    int64_t i = 0;
    while (i + WIDTH <= n) {
        UNROLLED for (int r = 0; r < R; r++) part[r] = (vec){0};
        for (int64_t left = SUMMED; left && i + WIDTH <= n; left--, i += WIDTH) {
            const vec v = load(x + i);
            UNROLLED for (int r = 0; r < R; r++) part[r] += v * load(w + r * n + i);
        }
        UNROLLED for (int r = 0; r < R; r++) sum[r] += part[r];
    }
    if (i < n) {
        const vec v = load_some(x + i, n - i);
        UNROLLED for (int r = 0; r < R; r++) sum[r] += v * load_some(w + r * n + i, n - i);
    }
    UNROLLED for (int r = 0; r < R; r++) y[r] = total_of(sum[r]);
}

// A row of small numbers times x, in blocks of a multiple of SMALL.
INLINE float small_row(const int bits, const float *x, const uint8_t *w,
                       const float *scales, const float *zeros, int64_t n,
                       int64_t block) {
    vec sum = {0};
    for (int64_t start = 0; start < n; start += block, scales++) {
        const vec zero = all((bits == 4 ? 8.f : 0.f) + (zeros ? *zeros++ : 0.f));
        vec part[2] = {{0}};
        for (int64_t i = start; i < start + block; i += SMALL)
            UNROLLED for (int v = 0; v < SMALL / WIDTH; v++) {
                const int place = v * WIDTH;
                const vec number =
                    bits == 8 ? from_chars((const int8_t *)w + i + place)
                              : from_bytes(w + i / 2 + place % 16, place / 16 * 4);
                part[v % 2] += (number - zero) * load(x + i + place);
            }
        sum += (part[0] + part[1]) * all(*scales);
    }
    return total_of(sum);
}

static void rows_of(const gemv_record *r, const call *c, const float *x, float *y,
                    int64_t first, int64_t behind) {
    const int64_t n = r->ins, count = r->block ? n / r->block : 0;
    const float *scales = at(c, r->scales), *zeros = at(c, r->zeros);
    const char *weight = at(c, r->weight);
    int64_t o = first;
    if (r->mode == GEMV_ROWS) {
        const float *w = (const float *)weight;
        for (; o + 4 <= behind; o += 4) float_rows(4, x, w + o * n, n, y + o);
        for (; o < behind; o++) float_rows(1, x, w + o * n, n, y + o);
        return;
    }
    for (; o < behind; o++) {
        const float *s = scales + o * count, *z = zeros ? zeros + o * count : 0;
        if (r->mode == GEMV_INT8)
            y[o] = small_row(8, x, (const uint8_t *)weight + o * n, s, z, n, r->block);
        else
            y[o] = small_row(4, x, (const uint8_t *)weight + o * n / 2, s, z, n, r->block);
    }
}

// Weights (ins, outs): DEEP rows of them at a time are added to a stretch of the result.
static void columns_of(const gemv_record *r, const call *c, const float *x, float *y,
                       int64_t first, int64_t behind) {
    const float *w = at(c, r->weight);
    const int64_t step = r->outs;
    memset(y + first, 0, 4 * (size_t)(behind - first));
    for (int64_t k = 0; k < r->ins; k += DEEP) {
        const int64_t rows = r->ins - k < DEEP ? r->ins - k : DEEP;
        const float *from = w + k * step;
        int64_t o = first;
        if (rows == DEEP)
            for (; o + WIDTH <= behind; o += WIDTH) {
                vec s = load(from + o) * x[k];
                UNROLLED for (int i = 1; i < DEEP; i++)
                    s += load(from + i * step + o) * x[k + i];
                store(y + o, load(y + o) + s);
            }
        for (; o < behind; o++) {
            float s = 0;
            for (int64_t i = 0; i < rows; i++) s += from[i * step + o] * x[k + i];
            y[o] += s;
        }
    }
}

static void finished(const gemv_record *r, const float *bias, const float *residual,
                     float *y, int64_t first, int64_t behind) {
    for (int64_t o = first; o < behind; o++)
        y[o] += (bias ? bias[o] : 0) + (residual ? residual[o] : 0);
    const int64_t whole = (behind - first) / LANES;
    const float low = (float)r->low, high = (float)r->high;
    activate(r->act, y + first, 0, whole, 1, LANES, low, high);
    float *rest = y + first + whole * LANES, aside[LANES] = {0};
    const int64_t left = behind - first - whole * LANES;
    if (!left) return;
    memcpy(aside, rest, 4 * (size_t)left);
    activate(r->act, aside, 0, 1, 1, LANES, low, high);
    memcpy(rest, aside, 4 * (size_t)left);
}

// Shares are stretches of outputs.
void gemv(const void *record, const call *c, int64_t part, int64_t parts) {
    const gemv_record *r = record;
    const float *bias = at(c, r->bias), *residual = at(c, r->residual);
    SHARE((r->outs + LANES - 1) / LANES);
    const int64_t from = first * LANES, end = behind * LANES;
    const int64_t to = end < r->outs ? end : r->outs;
    for (int64_t i = 0; i < r->rows; i++) {
        const float *x = (const float *)at(c, r->x) + i * r->ins;
        float *y = (float *)at(c, r->out) + i * r->outs;
        if (r->mode == GEMV_COLUMNS)
            columns_of(r, c, x, y, from, to);
        else
            rows_of(r, c, x, y, from, to);
        finished(r, bias, residual ? residual + i * r->outs : 0, y, from, to);
    }
}
