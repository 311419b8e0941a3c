// The places of maxima or minima along an axis: (outer, width, inner) -> (outer, inner)
#include "call.h"

// Whether a value takes the place of the best so far; the first NaN stays, as in NumPy.
INLINE int is_better(float value, float best, int64_t is_min, int64_t last) {
    if (best != best) return last && value != value;
    if (value != value) return 1;
    if (last && value == best) return 1;
    return is_min ? value < best : value > best;
}

void arg_max(const void *record, const call *c, int64_t part, int64_t parts) {
    const arg_max_record *r = record;
    const float *x = at(c, r->x);
    int64_t *out = at(c, r->out);
    SHARE(r->outer * r->inner);
    for (int64_t u = first; u < behind; u++) {
        const float *row = x + u / r->inner * r->width * r->inner + u % r->inner;
        int64_t place = 0;
        for (int64_t i = 1; i < r->width; i++) {
            const float value = row[i * r->inner], best = row[place * r->inner];
            if (is_better(value, best, r->is_min, r->last)) place = i;
        }
        out[u] = place;
    }
}
