// Convolutions of codes where every channel has a window of its own.
//
// Weights are (block, four rows of a window, columns of it, 16 channels, these four): four
// bytes of a channel, one below the other, are the 32 bits that products are summed of.
#pragma once
#include "dot.h"
#include "results.h"

enum { MOST_COLUMNS = 64 };  // of input that a tile's windows go over

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
    ALIGNED int32_t sums[MOST_ROWS * LANES];
    ivec columns[MOST_COLUMNS];
    const uint8_t *x = (const uint8_t *)at(c, r->x)
                       + ((const int32_t *)at(c, r->from))[first] + channel;
    const int8_t *w = (const int8_t *)at(c, r->weight) + channel * r->depth;
    const int64_t count = (rows - 1) * r->stride + (r->kernel1 - 1) * r->dilation1 + 1;
    const int64_t down = r->dilation0 * r->line;
    for (int64_t i = 0; i < rows; i++) memcpy(sums + i * LANES, to->base, 4 * LANES);
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
    finish_tile(r, c, to, sums, 0, channel, first, rows);
}

#if defined(__AVX512BW__)
// With vectors of 64 bytes, four blocks at a time; where there are fewer, one or two of
// several pixels. Interleaved, bytes of four rows are four vectors: the n-th has channels 4 n
// to 4 n + 3 of each block.
enum { MOST_TAPS = 128, QUARTERS = 4, SIDE_BY_SIDE = 4 };

typedef struct {
    int64_t channel, blocks, pixels;  // blocks x pixels <= QUARTERS
    ivec taps[MOST_TAPS], start[QUARTERS];
    coding by[QUARTERS];
    outputs to[QUARTERS];  // of each block
    int is_direct;
} unit;

// Each block's four numbers from the 4 n-th on.
INLINE ivec quarter(const unit *u, const void *numbers, int64_t block_bytes, int64_t n) {
    ALIGNED int32_t found[WIDTH];
    for (int64_t i = 0; i < QUARTERS; i++) {
        const int64_t block = i % u->blocks;
        memcpy(found + 4 * i, (const char *)numbers + block * block_bytes + 16 * n, 16);
    }
    return whole(found);
}

static void unit_of(const quantized_record *r, const call *c, int64_t block, unit *u) {
    const int64_t left = r->groups - block;
    const int64_t taps = (r->kernel0 + 3) / 4 * r->kernel1;
    u->channel = block * LANES;
    u->blocks = left < QUARTERS ? left : QUARTERS;
    u->pixels = QUARTERS / u->blocks;
    u->is_direct = 1;
    for (int64_t i = 0; i < u->blocks; i++) {
        outputs_of(r, c, u->channel + i * LANES, &u->to[i]);
        u->is_direct &= u->to[i].doubt && is_of_codes_alone(r, &u->to[i]);
    }
    const int8_t *weight = (const int8_t *)at(c, r->weight) + u->channel * r->depth;
    for (int64_t k = 0; k < taps; k++)
        for (int64_t n = 0; n < QUARTERS; n++)
            u->taps[QUARTERS * k + n] =
                quarter(u, weight + 4 * LANES * k, LANES * r->depth, n);
    for (int64_t n = 0; n < QUARTERS; n++) {
        u->start[n] = quarter(u, u->to[0].base, sizeof *u->to, n);
        if (!u->is_direct) continue;
        u->by[n] = coding_of(u->to, 0);
        u->by[n].steps = (vec)quarter(u, u->to[0].steps, sizeof *u->to, n);
        u->by[n].offset = (vec)quarter(u, u->to[0].offset, sizeof *u->to, n);
    }
}

// The bytes of a unit's blocks, of each of its pixels, which are `apart`.
INLINE __m512i bytes_at(const uint8_t *p, int64_t blocks, int64_t apart) {
    if (blocks == 4) return _mm512_loadu_si512(p);
    if (blocks == 3) return _mm512_maskz_loadu_epi64(0x3f, p);
    if (blocks == 2)
        return _mm512_inserti64x4(
            _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p)),
            _mm256_loadu_si256((const __m256i *)(p + apart)), 1);
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p + apart)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p + 2 * apart)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p + 3 * apart)), 3);
}

// Columns of `deep` rows, `line` apart, side by side.
INLINE void interleave(const uint8_t *x, int64_t deep, int64_t line, int64_t count,
                       int64_t row, int64_t blocks, int64_t apart, ivec *columns) {
    for (int64_t i = 0; i < count; i++, x += row, columns += QUARTERS) {
        __m512i rows[4] = {0};
        for (int64_t k = 0; k < deep; k++) rows[k] = bytes_at(x + k * line, blocks, apart);
        const __m512i low = _mm512_unpacklo_epi8(rows[0], rows[1]),
                      high = _mm512_unpackhi_epi8(rows[0], rows[1]),
                      below = _mm512_unpacklo_epi8(rows[2], rows[3]),
                      last = _mm512_unpackhi_epi8(rows[2], rows[3]);
        columns[0] = (ivec)_mm512_unpacklo_epi16(low, below);
        columns[1] = (ivec)_mm512_unpackhi_epi16(low, below);
        columns[2] = (ivec)_mm512_unpacklo_epi16(high, last);
        columns[3] = (ivec)_mm512_unpackhi_epi16(high, last);
    }
}

static void columns_of(const uint8_t *x, int64_t deep, int64_t line, int64_t count,
                       int64_t row, const unit *u, int64_t apart, ivec *columns) {
#define OF(n)                                                                    \
    case n:                                                                      \
        if (deep == 3)                                                           \
            interleave(x, 3, line, count, row, n, apart, columns);               \
        else                                                                     \
            interleave(x, deep, line, count, row, n, apart, columns);            \
        break;
    switch (u->blocks) { OF(1) OF(2) OF(3) OF(4) }
#undef OF
}

// Sums of R results side by side over K columns, `dilation` apart, added to `start`.
INLINE void weigh_units(const int R, const int64_t K, const int64_t stride,
                        const int64_t dilation, const ivec *columns, const ivec *taps,
                        const ivec *start, int64_t step, ivec *sums) {
    ivec acc[SIDE_BY_SIDE][QUARTERS];
    UNROLLED for (int i = 0; i < R; i++) UNROLLED for (int n = 0; n < QUARTERS; n++)
        acc[i][n] = start[step * i + n];
    UNROLLED for (int64_t k = 0; k < K; k++, columns += QUARTERS * dilation)
        UNROLLED for (int n = 0; n < QUARTERS; n++) {
            const ivec tap = taps[QUARTERS * k + n];
            UNROLLED for (int i = 0; i < R; i++)
                acc[i][n] = dot(acc[i][n], columns[i * stride * QUARTERS + n], tap);
        }
    UNROLLED for (int i = 0; i < R; i++) UNROLLED for (int n = 0; n < QUARTERS; n++)
        sums[QUARTERS * i + n] = acc[i][n];
}

INLINE void weigh_line(const int64_t K, const int64_t stride, const int64_t dilation,
                       int64_t count, const ivec *columns, const ivec *taps,
                       const ivec *start, int64_t step, ivec *sums) {
    int64_t i = 0;
    for (; i + SIDE_BY_SIDE <= count; i += SIDE_BY_SIDE)
        weigh_units(SIDE_BY_SIDE, K, stride, dilation, columns + i * stride * QUARTERS,
                    taps, start + step * i, step, sums + QUARTERS * i);
    for (; i < count; i++)
        weigh_units(1, K, stride, dilation, columns + i * stride * QUARTERS, taps,
                    start + step * i, step, sums + QUARTERS * i);
}

// The codes of `count` results of each pixel; 0 where some are to be found by division.
static int unit_codes(const quantized_record *r, const call *c, const unit *u,
                      const ivec *sums, int64_t first, int64_t count, int64_t far) {
    const int32_t *places = (const int32_t *)at(c, r->places) + first;
    uint8_t *out = (uint8_t *)at(c, r->codes) + u->channel;
    ivec nearest[QUARTERS];
    UNROLLED for (int n = 0; n < QUARTERS; n++) nearest[n] = (ivec){0} + INT32_MAX;
    for (int64_t i = 0; i < count; i++, sums += QUARTERS) {
        __m512i v[QUARTERS];
        UNROLLED for (int n = 0; n < QUARTERS; n++)
            v[n] = (__m512i)product_bits(sums[n], &u->by[n], &nearest[n]);
        const __m512i byte = _mm512_set1_epi16(255);
        const __m512i low = _mm512_and_si512(_mm512_packus_epi32(v[0], v[1]), byte),
                      high = _mm512_and_si512(_mm512_packus_epi32(v[2], v[3]), byte),
                      codes = _mm512_packus_epi16(low, high);
        if (u->pixels == 1) {
            const __mmask8 mask = (__mmask8)((1 << 2 * u->blocks) - 1);
            _mm512_mask_storeu_epi64(out + places[i], mask, codes);
        } else if (u->pixels == 2) {
            _mm256_storeu_si256((__m256i *)(out + places[i]),
                                _mm512_castsi512_si256(codes));
            _mm256_storeu_si256((__m256i *)(out + places[i + far]),
                                _mm512_extracti64x4_epi64(codes, 1));
        } else {
            _mm_storeu_si128((__m128i *)(out + places[i]), _mm512_castsi512_si128(codes));
            _mm_storeu_si128((__m128i *)(out + places[i + far]),
                             _mm512_extracti32x4_epi32(codes, 1));
            _mm_storeu_si128((__m128i *)(out + places[i + 2 * far]),
                             _mm512_extracti32x4_epi32(codes, 2));
            _mm_storeu_si128((__m128i *)(out + places[i + 3 * far]),
                             _mm512_extracti32x4_epi32(codes, 3));
        }
    }
    UNROLLED for (int n = 1; n < QUARTERS; n++) nearest[0] = lesser(nearest[0], nearest[n]);
    int32_t doubt = 0;
    for (int64_t i = 0; i < u->blocks; i++)
        doubt = doubt < u->to[i].doubt ? u->to[i].doubt : doubt;
    return !is_near(nearest[0], doubt);
}

// The other results: sums in the order of their channels, a block of a pixel at a time.
static void finish_unit(const quantized_record *r, const call *c, const unit *u,
                        const ivec *sums, int64_t first, int64_t count, int64_t far) {
    ALIGNED int32_t ordered[MOST_ROWS * LANES];
    for (int64_t part = 0; part < u->blocks * u->pixels; part++) {
        const int64_t block = part % u->blocks;
        for (int64_t i = 0; i < count * QUARTERS; i++)
            memcpy(ordered + 4 * i, (const int32_t *)(sums + i) + 4 * part, 16);
        finish_tile(r, c, &u->to[block], ordered, 0, u->channel + block * LANES,
                    first + part / u->blocks * far, count);
    }
}

// Results of a line from the first-th on: `count` of each pixel, which are `far`.
static void unit_tile(const quantized_record *r, const call *c, const unit *u,
                      int64_t first, int64_t count, int64_t far) {
    ivec sums[MOST_ROWS * QUARTERS], columns[MOST_COLUMNS * QUARTERS];
    const uint8_t *x = (const uint8_t *)at(c, r->x)
                       + ((const int32_t *)at(c, r->from))[first] + u->channel;
    const int64_t wide = (count - 1) * r->stride + (r->kernel1 - 1) * r->dilation1 + 1;
    const int64_t down = r->dilation0 * r->line, apart = far * r->stride * r->row;
    const ivec *taps = u->taps;
    const int is_common = r->kernel1 == 3 && r->dilation1 == 1;
    const ivec *start = u->start;
    int64_t step = 0;
    for (int64_t k = 0; k < r->kernel0; k += 4, taps += QUARTERS * r->kernel1) {
        const int64_t deep = r->kernel0 - k < 4 ? r->kernel0 - k : 4;
        columns_of(x + k * down, deep, down, wide, r->row, u, apart, columns);
        if (is_common && r->stride == 1)
            weigh_line(3, 1, 1, count, columns, taps, start, step, sums);
        else if (is_common && r->stride == 2)
            weigh_line(3, 2, 1, count, columns, taps, start, step, sums);
        else
            weigh_line(r->kernel1, r->stride, r->dilation1, count, columns, taps, start,
                       step, sums);
        start = sums, step = QUARTERS;
    }
    if (u->is_direct && unit_codes(r, c, u, sums, first, count, far)) return;
    finish_unit(r, c, u, sums, first, count, far);
}

// The pixels of a unit go through parts of a line that overlap where it cannot be divided.
static void units(const quantized_record *r, const call *c, int64_t part, int64_t parts) {
    const int64_t lines = r->rows / r->width;
    SHARE((r->groups + QUARTERS - 1) / QUARTERS * lines);
    int64_t known = -1;
    unit u;
    for (int64_t i = first; i < behind; i++) {
        if (i / lines != known) unit_of(r, c, i / lines * QUARTERS, &u);
        known = i / lines;
        const int64_t line = i % lines * r->width;
        const int64_t far = r->width / u.pixels, share = r->width - (u.pixels - 1) * far;
        const int64_t tiles = (share + MOST_ROWS - 1) / MOST_ROWS;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t start = t * share / tiles, end = (t + 1) * share / tiles;
            unit_tile(r, c, &u, line + start, end - start, far);
        }
    }
}
#endif

static void windows(const quantized_record *r, const call *c, int64_t part,
                    int64_t parts) {
#if defined(__AVX512BW__)
    if ((r->kernel0 + 3) / 4 * r->kernel1 * QUARTERS <= MOST_TAPS) {
        units(r, c, part, parts);
        return;
    }
#endif
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
