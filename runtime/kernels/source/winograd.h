// Tiles of 2 x 2 places for convolutions of 3 x 3 taps by Winograd's algorithm, and the
// 4 x 4 pixels that each one's places see.
#pragma once
#include "vector.h"

enum { PLACES = 16, GAP = 16 };

// B' d B of a patch of 4 x 4 pixels, `pitch` floats from a row to the next one.
INLINE void turn_input(const float *d, int64_t pitch, float *to, int64_t apart) {
    vec t[4][4];
    UNROLLED for (int j = 0; j < 4; j++) {
        const float *p = d + j * LANES;
        const vec a = load(p), b = load(p + pitch), c = load(p + 2 * pitch),
                  e = load(p + 3 * pitch);
        t[0][j] = a - c, t[1][j] = b + c, t[2][j] = c - b, t[3][j] = b - e;
    }
    UNROLLED for (int i = 0; i < 4; i++) {
        float *row = to + 4 * i * apart;
        store(row, t[i][0] - t[i][2]);
        store(row + apart, t[i][1] + t[i][2]);
        store(row + 2 * apart, t[i][2] - t[i][1]);
        store(row + 3 * apart, t[i][1] - t[i][3]);
    }
}

typedef struct {
    int64_t height, width;     // of the input
    int64_t before0, before1;  // rows and columns of zeros before it
    int64_t rows, columns;     // of tiles
} grid;

typedef struct {
    int64_t image, y, x;  // of the result, the first place of a tile
} corner;

INLINE corner corner_of(const grid *m, int64_t number) {
    const int64_t column = number % m->columns, rest = number / m->columns;
    return (corner){rest / m->rows, rest % m->rows * 2, column * 2};
}

// The part of `size` x `size` pixels that is inside of a map; zeros elsewhere.
static inline void cut_patch(const float *map, int64_t height, int64_t width, int64_t y,
                             int64_t x, int64_t size, float *to) {
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j < size; j++, to += LANES) {
            const int is_inside = y + i >= 0 && y + i < height && x + j >= 0 && x + j < width;
            if (is_inside)
                memcpy(to, map + ((y + i) * width + x + j) * LANES, 4 * LANES);
            else
                memset(to, 0, 4 * LANES);
        }
}

// A block of channels at `count` tiles: (16, tile, LANES), `apart` floats between the 16.
static inline void turn_inputs(const grid *m, const float *x, int64_t first, int64_t count,
                               float *to, int64_t apart) {
    float aside[PLACES * LANES];
    for (int64_t t = 0; t < count; t++, to += LANES) {
        const corner at = corner_of(m, first + t);
        const float *map = x + at.image * m->height * m->width * LANES;
        const int64_t top = at.y - m->before0, left = at.x - m->before1;
        const float *patch = map + (top * m->width + left) * LANES;
        int64_t pitch = m->width * LANES;
        if (top < 0 || left < 0 || top + 4 > m->height || left + 4 > m->width) {
            cut_patch(map, m->height, m->width, top, left, 4, aside);
            patch = aside, pitch = 4 * LANES;
        }
        for (int v = 0; v < LANES; v += WIDTH)
            turn_input(patch + v, pitch, to + v, apart);
    }
}
