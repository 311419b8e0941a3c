// Weights of 3 x 3 taps as winograd.c reads them, made anew for every step of training.
//
// G g G' of every pair of channels, from given strides of outputs and inputs, becomes
// (group of `wide` outputs, 16, input, output), zeros after the last output. is_turned:
// the taps in the opposite order, as gradients to inputs have them.
#include "call.h"
#include "turn.h"

enum { TAPS = 9, PLACES = 16 };

// Three taps of a row or a column as four numbers.
INLINE void spread(vec a, vec b, vec c, vec *to, int step) {
    const vec ends = a + c;
    to[0] = a, to[step] = 0.5f * (ends + b);
    to[2 * step] = 0.5f * (ends - b), to[3 * step] = c;
}

// The taps of `some` outputs out of WIDTH, with one input.
INLINE void read_taps(const float *x, const float *end, int64_t step, int64_t some,
                      vec *taps) {
    UNROLLED for (int start = 0; start < TAPS; start += WIDTH) {
        const int n = TAPS - start < WIDTH ? TAPS - start : WIDTH;
        vec rows[WIDTH];
        UNROLLED for (int i = 0; i < WIDTH; i++) {
            const float *from = x + i * step + start;
            rows[i] = i >= some             ? (vec){0}
                      : from + WIDTH <= end ? load(from)
                                            : load_some(from, n);
        }
        turn(rows);
        UNROLLED for (int i = 0; i < n; i++) taps[start + i] = rows[i];
    }
}

void winograd_pack(const void *record, const call *c, int64_t part, int64_t parts) {
    const winograd_pack_record *r = record;
    const float *weights = at(c, r->x), *end = weights + r->outs * r->ins * TAPS;
    const int64_t panels = (r->outs + r->wide - 1) / r->wide, apart = r->ins * r->wide;
    SHARE(panels * r->wide / WIDTH);
    for (int64_t u = first; u < behind; u++) {
        const int64_t low = u * WIDTH, left = r->outs - low;
        const int64_t some = left < 0 ? 0 : left < WIDTH ? left : WIDTH;
        const float *x = weights + low * r->out_step;
        float *out = (float *)at(c, r->out) + low / r->wide * PLACES * apart + low % r->wide;
        for (int64_t k = 0; k < r->ins; k++, x += r->in_step, out += r->wide) {
            vec taps[TAPS], rows[12], places[PLACES];
            read_taps(x, end, r->out_step, some, taps);
            UNROLLED for (int i = 0; i < TAPS / 2; i++) {
                const vec a = taps[i], b = taps[TAPS - 1 - i];
                taps[i] = r->is_turned ? b : a, taps[TAPS - 1 - i] = r->is_turned ? a : b;
            }
            UNROLLED for (int j = 0; j < 3; j++)
                spread(taps[j], taps[3 + j], taps[6 + j], rows + j, 3);
            UNROLLED for (int i = 0; i < 4; i++)
                spread(rows[3 * i], rows[3 * i + 1], rows[3 * i + 2], places + 4 * i, 1);
            UNROLLED for (int p = 0; p < PLACES; p++) store(out + p * apart, places[p]);
        }
    }
}
