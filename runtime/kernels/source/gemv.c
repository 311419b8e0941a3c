// Matrix-vector products: each weight is read once, from where the parameter has it.
//
// Time is that of reading the weights, so they are not packed as floats: rows of outputs
// (outs, ins), rows of inputs (ins, outs), or quantized weights with a scale for each block
// along a row, which become floats in registers. A byte of 4-bit weights holds those
// at i and i + 16 of 32, with 8 added. Where sums of products of bytes are an instruction,
// quantized weights are packed for them, and x is in digits: the integers' sums are exact.
#include "activation.h"
#include "bytes.h"
#include "call.h"
#include "small_weights.h"

enum {
    SUMMED = 128,  // products of a lane that are summed one by one
    SMALL = 32,
    DEEP = 8,
    AHEAD = 2048  // bytes of weights that are asked for before they are used
};

// Rows of float weights, `apart` floats from one to the next, times x.
INLINE void float_rows(const int count, const float *x, const float *w, int64_t apart,
                       int64_t n, float *sums) {
    enum { TOGETHER = 4, MOST = 2 };
    vec sum[MOST] = {{0}};
    int64_t i = 0;
    while (i + TOGETHER * WIDTH <= n) {
        vec part[MOST][TOGETHER] = {{{0}}};
        for (int64_t left = SUMMED; left && i + TOGETHER * WIDTH <= n; left--) {
            UNROLLED for (int o = 0; o < count; o++) {
                const float *from = w + o * apart + i;
                UNROLLED for (int u = 0; u < TOGETHER * WIDTH * 4; u += 64)
                    __builtin_prefetch((const char *)from + u + AHEAD, 0, 3);
                UNROLLED for (int u = 0; u < TOGETHER; u++)
                    part[o][u] += load(x + i + u * WIDTH) * load(from + u * WIDTH);
            }
            i += TOGETHER * WIDTH;
        }
        UNROLLED for (int o = 0; o < count; o++)
            sum[o] += (part[o][0] + part[o][1]) + (part[o][2] + part[o][3]);
    }
    for (int o = 0; o < count; o++) {
        const float *from = w + o * apart;
        int64_t k = i;
        for (; k + WIDTH <= n; k += WIDTH) sum[o] += load(x + k) * load(from + k);
        if (k < n) sum[o] += load_some(x + k, n - k) * load_some(from + k, n - k);
        sums[o] = sum_of(sum[o]);
    }
}

// SMALL weights of 4 bits, of which a byte holds those at i and i + 16, less 8 and their
// zero point, times their scale.
#if WIDTH == 16
INLINE void values_of_4(const uint8_t *w, vec zero, vec scale, vec *values) {
    const ivec both = widened(w);  // the permutation reads the lowest 4 bits
    const vec numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const __m512 table = (__m512)((numbers - zero) * scale);
    values[0] = (vec)_mm512_permutexvar_ps((__m512i)both, table);
    values[1] = (vec)_mm512_permutexvar_ps((__m512i)(both >> 4), table);
}
#else
INLINE void values_of_4(const uint8_t *w, vec zero, vec scale, vec *values) {
    UNROLLED for (int v = 0; v < 16 / WIDTH; v++) {
        const ivec both = widened(w + v * WIDTH);
        values[v] = (__builtin_convertvector(both & 15, vec) - zero) * scale;
        values[v + 16 / WIDTH] =
            (__builtin_convertvector(both >> 4, vec) - zero) * scale;
    }
}
#endif

// Those of 8 bits, less their zero point.
INLINE void values_of_8(const uint8_t *w, const int has_zeros, vec zero, vec *values) {
    UNROLLED for (int v = 0; v < SMALL / WIDTH; v++) {
        values[v] = from_chars((const int8_t *)w + v * WIDTH);
        if (has_zeros) values[v] -= zero;
    }
}

// A row of quantized weights times x, in blocks of a multiple of SMALL.
INLINE float row_of(const int bits, const int has_zeros, const float *x,
                    const uint8_t *w, const float *scales, const float *zeros,
                    int64_t n, int64_t block) {
    vec sum[2] = {{0}};
    for (int64_t start = 0; start < n; start += block, scales++) {
        const vec scale = all(*scales);
        const vec zero = all((bits == 4 ? 8.f : 0.f) + (has_zeros ? *zeros++ : 0.f));
        vec part[2] = {{0}};
        for (int64_t i = start; i < start + block; i += SMALL) {
            vec values[SMALL / WIDTH];
            __builtin_prefetch(w + i * bits / 8 + AHEAD, 0, 3);
            if (bits == 8)
                values_of_8(w + i, has_zeros, zero, values);
            else
                values_of_4(w + i / 2, zero, scale, values);
            UNROLLED for (int v = 0; v < SMALL / WIDTH; v++)
                (bits == 8 ? part : sum)[v % 2] += values[v] * load(x + i + v * WIDTH);
        }
        if (bits == 8)
            UNROLLED for (int v = 0; v < 2; v++) sum[v] += part[v] * scale;
    }
    return sum_of(sum[0] + sum[1]);
}

// The same, compiled for the usual sizes of blocks and for weights without zero points.
INLINE float small_row(const int bits, const float *x, const uint8_t *w,
                       const float *scales, const float *zeros, int64_t n,
                       int64_t block) {
    if (zeros) return row_of(bits, 1, x, w, scales, zeros, n, block);
    if (block == SMALL) return row_of(bits, 0, x, w, scales, 0, n, SMALL);
    return row_of(bits, 0, x, w, scales, 0, n, block);
}

// Results `first` to `behind` of every row of x; a row of weights is read once for all.
static void rows_of(const gemv_record *r, const call *c, const float *x, float *y,
                    int64_t first, int64_t behind) {
    const int64_t n = r->ins, count = r->block ? n / r->block : 0;
    const float *scales = at(c, r->scales), *zeros = at(c, r->zeros);
    const uint8_t *weight = at(c, r->weight);
    if (r->mode == GEMV_ROWS) {
        // Two halves side by side: memory gives more to two streams than to one.
        const int64_t half = (behind - first) / 2;
        const float *w = (const float *)weight + first * n;
        for (int64_t o = 0; o < half; o++, w += n)
            for (int64_t i = 0; i < r->rows; i++) {
                float sums[2], *to = y + i * r->outs + first + o;
                float_rows(2, x + i * n, w, half * n, n, sums);
                to[0] = sums[0], to[half] = sums[1];
            }
        if ((behind - first) % 2)
            for (int64_t i = 0; i < r->rows; i++)
                float_rows(1, x + i * n, w + half * n, 0, n, y + i * r->outs + behind - 1);
        return;
    }
    for (int64_t o = first; o < behind; o++) {
        const float *s = scales ? scales + o * count : 0;
        const float *z = zeros ? zeros + o * count : 0;
        for (int64_t i = 0; i < r->rows; i++) {
            const float *from = x + i * n;
            float *to = y + i * r->outs + o;
            if (r->mode == GEMV_INT8)
                *to = small_row(8, from, weight + o * n, s, z, n, r->block);
            else
                *to = small_row(4, from, weight + o * n / 2, s, z, n, r->block);
        }
    }
}

// DEEP rows of weights (ins, outs) at a time, times x, added to a stretch of the result.
static void some_rows(const float *x, const float *w, int64_t step, int64_t rows,
                      float *y, int64_t first, int64_t behind) {
    int64_t o = first;
    if (rows == DEEP)
        for (; o + WIDTH <= behind; o += WIDTH) {
            vec s = load(w + o) * x[0];
            UNROLLED for (int i = 1; i < DEEP; i++) s += load(w + i * step + o) * x[i];
            store(y + o, load(y + o) + s);
        }
    for (; o < behind; o++) {
        float s = 0;
        for (int64_t i = 0; i < rows; i++) s += w[i * step + o] * x[i];
        y[o] += s;
    }
}

static void columns_of(const gemv_record *r, const call *c, const float *x, float *y,
                       int64_t first, int64_t behind) {
    const float *w = at(c, r->weight);
    const int64_t step = r->outs;
    for (int64_t i = 0; i < r->rows; i++)
        memset(y + i * step + first, 0, 4 * (size_t)(behind - first));
    for (int64_t k = 0; k < r->ins; k += DEEP) {
        const int64_t rows = r->ins - k < DEEP ? r->ins - k : DEEP;
        for (int64_t i = 0; i < r->rows; i++)
            some_rows(x + i * r->ins + k, w + k * step, step, rows, y + i * step, first,
                      behind);
    }
}

// Groups of outputs of packed weights; a group is read once for all rows.
static void groups_of(const gemv_record *r, const call *c, const float *x, float *y,
                      int64_t first, int64_t behind) {
    const int is_wide = r->mode == GEMV_WIDE8 || r->mode == GEMV_WIDE4;
    const int bits = r->mode == GEMV_WIDE8 || r->mode == GEMV_DOTS8 ? 8 : 4;
    const int64_t n = r->ins, blocks = n / BLOCK, wide = is_wide ? WIDE : LANES;
    const int64_t counts = is_wide ? n : n / r->block, each = r->block / BLOCK;
    const float *scales = at(c, r->scales);
    const void *zeros = at(c, r->zeros);
    const number_block *numbers = at(c, r->digits);
    for (int64_t o = first; o < behind; o += wide) {
        const int64_t group = o / wide, of = group * (is_wide ? n : counts * LANES);
        const uint8_t *w = (const uint8_t *)at(c, r->weight) + group * wide * n * bits / 8;
        const float *s = scales + of, *z = zeros ? (const float *)zeros + of : 0;
        const int32_t *m = zeros ? (const int32_t *)zeros + of : 0;
        const int64_t here = behind - o < wide ? behind - o : wide;
        for (int64_t i = 0; i < r->rows; i++) {
            ALIGNED float sums[WIDE];
            const number_block *d = numbers + i * blocks;
            const float *from = x + i * n;
            if (is_wide && bits == 8)
                z ? wide_group(8, 1, from, w, s, z, n, sums)
                  : wide_group(8, 0, from, w, s, 0, n, sums);
            else if (is_wide)
                z ? wide_group(4, 1, from, w, s, z, n, sums)
                  : wide_group(4, 0, from, w, s, 0, n, sums);
            else if (!have_digits(d, blocks))
                plain_group(bits, from, w, s, m, counts, r->block, sums);
            else if (bits == 8)
                m ? dot_group(8, 1, d, w, s, m, counts, each, sums)
                  : dot_group(8, 0, d, w, s, 0, counts, each, sums);
            else
                m ? dot_group(4, 1, d, w, s, m, counts, each, sums)
                  : dot_group(4, 0, d, w, s, 0, counts, each, sums);
            memcpy(y + i * r->outs + o, sums, 4 * (size_t)here);
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
    const int64_t unit = r->mode == GEMV_WIDE8 || r->mode == GEMV_WIDE4 ? WIDE : LANES;
    SHARE((r->outs + unit - 1) / unit);
    const int64_t from = first * unit, end = behind * unit;
    const int64_t to = end < r->outs ? end : r->outs;
    const float *x = at(c, r->x);
    float *y = at(c, r->out);
    if (from >= to) return;
    if (r->mode == GEMV_COLUMNS)
        columns_of(r, c, x, y, from, to);
    else if (r->mode < GEMV_DOTS8)
        rows_of(r, c, x, y, from, to);
    else
        groups_of(r, c, x, y, from, to);
    for (int64_t i = 0; i < r->rows; i++)
        finished(r, bias, residual ? residual + i * r->outs : 0, y + i * r->outs, from, to);
}
