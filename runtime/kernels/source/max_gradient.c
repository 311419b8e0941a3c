// Gradients of max pooling over maps in blocks of 16 channels.
#include <math.h>

#include "call.h"

// Each window's gradient goes to its maximum, the first of equal ones; after a
// NaN nothing is greater. Shares are images of blocks.
void max_gradient(const void *record, const call *c, int64_t part, int64_t parts) {
    const max_gradient_record *r = record;
    const int64_t plane = r->size0 * r->size1 * LANES;
    SHARE(r->planes);
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * plane;
        const float *g = (const float *)at(c, r->g) + u * r->place0 * r->place1 * LANES;
        float *out = (float *)at(c, r->out) + u * plane;
        memset(out, 0, sizeof(float) * plane);
        for (int64_t place = 0; place < r->place0 * r->place1; place++, g += LANES) {
            const int64_t a0 = place / r->place1 * r->step0 - r->before0;
            const int64_t b0 = place % r->place1 * r->step1 - r->before1;
            for (int p = 0; p < LANES; p += WIDTH) {
                vec best = all(-INFINITY);
                ivec found = (ivec){0} - 1;
                for (int64_t i = 0; i < r->kernel0; i++) {
                    const int64_t a = a0 + i * r->dilation0;
                    if (a < 0 || a >= r->size0) continue;
                    for (int64_t j = 0; j < r->kernel1; j++) {
                        const int64_t b = b0 + j * r->dilation1;
                        if (b < 0 || b >= r->size1) continue;
                        const int32_t number = (int32_t)(a * r->size1 + b);
                        const vec v = load(x + number * LANES + p);
                        const ivec is_first = found < 0;
                        const ivec is_nan = (ivec)(v != v);
                        const ivec takes = (ivec)(v > best) | is_first;
                        found = (takes & number) | (~takes & found);
                        best = choose((ivec)(v > best) | is_nan, v, best);
                    }
                }
                for (int i = 0; i < WIDTH; i++)
                    if (found[i] >= 0) out[found[i] * LANES + p + i] += g[p + i];
            }
        }
    }
}
