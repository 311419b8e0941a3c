// The arguments of every kernel: its record, the arrays of this call, and its share.
#pragma once
#include "records.h"
#include "vector.h"

// Arrays by number; a reference is a number of an array and a place in it.
typedef struct {
    char *const *arrays;
} call;

typedef void (*kernel)(const void *record, const call *c, int64_t part, int64_t parts);

INLINE void *at(const call *c, int64_t reference) {
    if (reference < 0) return 0;
    return c->arrays[reference >> 40] + (reference & ((1ll << 40) - 1));
}

// The share of `parts` equal ones of n units: from `first` up to `behind`.
#define SHARE(n)                                \
    const int64_t first = (n) * part / parts,   \
                  behind = (n) * (part + 1) / parts
