// Blocks of values as whole numbers of 24 bits, in three signed digits of base 256.
#pragma once
#include "call.h"

enum { BLOCK = 32, DIGITS = 3 };

// A value is `unit` times (digit[0] * 65536 + digit[1] * 256 + digit[2]), within half of
// `unit`, which is at most 2**-22 of the block's largest. It is NaN where a block has no
// such form: NaN, infinity, or all values below 2**-100.
typedef struct {
    int8_t digit[DIGITS][BLOCK];
    int32_t sum[DIGITS];  // of a digit in the block
    float unit;
} number_block;

// Whether all blocks of a row have this form.
INLINE int have_digits(const number_block *x, int64_t blocks) {
    int known = 1;
    for (int64_t b = 0; b < blocks; b++) known &= x[b].unit == x[b].unit;
    return known;
}
