// Values as bfloat16, for products: rows of float32, zeros behind the last number.
#include "call.h"
#include "half.h"

#if HAS_BF16
static void round_row(const float *x, int64_t n, uint16_t *out) {
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) store_half(out + i, load(x + i));
    if (i == n) return;
    uint16_t last[WIDTH];
    store_half(last, load_some(x + i, n - i));
    memcpy(out + i, last, 2 * (size_t)(n - i));
}

void to_half(const void *record, const call *c, int64_t part, int64_t parts) {
    const to_half_record *r = record;
    const float *x = at(c, r->x);
    uint16_t *out = at(c, r->out);
    SHARE(r->rows);
    if (r->x_row == r->width && r->out_row == r->width) {
        round_row(x + first * r->width, (behind - first) * r->width,
                  out + first * r->width);
        return;
    }
    for (int64_t i = first; i < behind; i++) {
        uint16_t *row = out + i * r->out_row;
        round_row(x + i * r->x_row, r->width, row);
        memset(row + r->width, 0, 2 * (size_t)(r->out_row - r->width));
    }
}
#else
void to_half(const void *record, const call *c, int64_t part, int64_t parts) {
    (void)record, (void)c, (void)part, (void)parts;
}
#endif
