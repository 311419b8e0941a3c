// Dropout of attention's weights: a mask (batches, heads, queries, keys) in memory, or
// drawn by its key wherever it is read.
#pragma once
#include "philox.h"

typedef struct {
    const uint8_t *kept;  // bytes; 0 where they are drawn
    uint64_t bound;
    round_keys keys;
    float factor;  // of the weights that are kept
} dropout;

// keep: the bytes, or the key where numbers below `bound` are kept; bound < 0: the bytes.
static dropout dropout_of(const void *keep, int64_t bound, double factor) {
    dropout d = {.kept = bound < 0 ? keep : 0, .factor = (float)factor};
    d.bound = (uint64_t)bound;
    if (keep && bound >= 0) spread_key(*(const uint64_t *)keep, d.keys);
    return d;
}

// The factors of n weights from a place of the mask on: 0, or that of the kept ones.
static void factors(const dropout *d, int64_t place, int64_t n, float *out) {
    if (d->kept) {
        for (int64_t i = 0; i < n; i++) out[i] = (float)d->kept[place + i] * d->factor;
        return;
    }
    uint8_t kept[TOGETHER];
    for (int64_t i = 0; i < n;) {
        const int64_t at = place + i, skip = at % 4, room = TOGETHER - skip;
        const int64_t some = n - i < room ? n - i : room;
        numbers_below(d->bound, (uint64_t)at / 4, 4, d->keys, kept);
        for (int64_t j = 0; j < some; j++) out[i + j] = (float)kept[skip + j] * d->factor;
        i += some;
    }
}
