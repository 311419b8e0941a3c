// Tiles of pixels that share their taps, as plans have them in tables.
#pragma once
#include <stdint.h>

// A stretch of the input that is contiguous in memory for every pixel of a tile.
typedef struct {
    int32_t x, weight, length;
} run;

typedef struct {
    int32_t first, count, stride, runs, n_runs, last, n_last;
} tile;
