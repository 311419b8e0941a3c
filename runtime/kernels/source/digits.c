// Values (rows, ins) as blocks of whole numbers, for sums of products in integers.
#include "digits.h"

static void digits_of(const float *x, number_block *to) {
    const int32_t most_whole = 127 * 65793;  // all digits 127
    float most = 0;
    int is_known = 1;
    for (int i = 0; i < BLOCK; i++) {
        const float size = __builtin_fabsf(x[i]);
        most = size > most ? size : most;
        is_known &= size < __builtin_inff();
    }
    memset(to, 0, sizeof *to);
    if (!is_known || (most > 0 && most < 0x1p-100f)) to->unit = __builtin_nanf("");
    if (!is_known || most < 0x1p-100f) return;
    int32_t bits;
    memcpy(&bits, &most, sizeof bits);
    int32_t power = 22 - ((bits >> 23) - 127);
    float factor = __builtin_ldexpf(1, power);
    if (most * factor > (float)most_whole) factor = __builtin_ldexpf(1, --power);
    to->unit = __builtin_ldexpf(1, -power);
    int32_t sum[DIGITS] = {0};
    for (int i = 0; i < BLOCK; i++) {
        int32_t whole = (int32_t)__builtin_rintf(x[i] * factor);
        for (int d = DIGITS - 1; d >= 0; d--) {
            const int8_t digit = (int8_t)whole;
            to->digit[d][i] = digit;
            sum[d] += digit;
            whole = (whole - digit) >> 8;
        }
    }
    memcpy(to->sum, sum, sizeof sum);
}

// Shares are blocks.
void digits(const void *record, const call *c, int64_t part, int64_t parts) {
    const digits_record *r = record;
    const float *x = at(c, r->x);
    number_block *out = at(c, r->out);
    SHARE(r->rows * r->ins / BLOCK);
    for (int64_t b = first; b < behind; b++) digits_of(x + b * BLOCK, out + b);
}
