// Panels of quantized weights as floats, in the order that convolutions use them.
#include "small_panel.h"

#include "bytes.h"
#include "digits.h"

// The weights of LANES outputs, as `dot_group` reads them, into columns of a panel.
INLINE void column_of(const int bits, const uint8_t *w, const float *scales,
                      const int32_t *zeros, int64_t counts, int64_t each, int64_t wide,
                      float *out) {
    enum { STEPS = BLOCK / 4, BYTES = 4 * WIDTH };
    for (int64_t s = 0; s < counts; s++, scales += LANES) {
        vec scale[PARTS], middle[PARTS];
        UNROLLED for (int p = 0; p < PARTS; p++) {
            ivec off = (bits == 8 ? 128 : 8) - (ivec){0};
            if (zeros) memcpy(&off, zeros + s * LANES + p * WIDTH, sizeof off);
            scale[p] = load(scales + p * WIDTH);
            middle[p] = __builtin_convertvector(off, vec);
        }
        for (int64_t k = 0; k < each; k++, out += BLOCK * wide)
            for (int i = 0; i < STEPS * bits / 8; i++, w += PARTS * BYTES)
                UNROLLED for (int p = 0; p < PARTS; p++) {
                    ivec all_of;
                    memcpy(&all_of, w + p * BYTES, sizeof all_of);
                    float *to = out + 4 * i * wide + p * WIDTH;
                    UNROLLED for (int j = 0; j < 4; j++, to += wide) {
                        const ivec code = all_of >> 8 * j & (bits == 8 ? 255 : 15);
                        store(to, (__builtin_convertvector(code, vec) - middle[p]) * scale[p]);
                        if (bits == 8) continue;
                        const ivec high = all_of >> (8 * j + 4) & 15;
                        store(to + BLOCK / 2 * wide,
                              (__builtin_convertvector(high, vec) - middle[p]) * scale[p]);
                    }
                }
    }
}

void small_panel(const small_weights *w, int64_t panel, float *out) {
    const int64_t counts = w->ins / w->block, each = w->block / BLOCK;
    const int64_t groups = (w->outs + LANES - 1) / LANES;
    for (int64_t lane = 0; lane < w->wide; lane += LANES) {
        const int64_t group = (panel * w->wide + lane) / LANES, of = group * counts * LANES;
        if (group >= groups) {
            for (int64_t i = 0; i < w->ins; i++)
                memset(out + i * w->wide + lane, 0, 4 * LANES);
            continue;
        }
        const uint8_t *codes = w->codes + group * w->ins * LANES * w->bits / 8;
        const int32_t *zeros = w->zeros ? w->zeros + of : 0;
        if (w->bits == 8)
            column_of(8, codes, w->scales + of, zeros, counts, each, w->wide, out + lane);
        else
            column_of(4, codes, w->scales + of, zeros, counts, each, w->wide, out + lane);
    }
}
