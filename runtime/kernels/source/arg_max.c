// The places of maxima or minima along an axis: (outer, width, inner) -> (outer, inner)
#include "call.h"

// Whether a value takes the place of the best so far; the first NaN stays, as in NumPy.
#define BETTER(name, type)                                             \
    INLINE int name(type value, type best, int64_t is_min, int64_t last) { \
        if (best != best) return last && value != value;               \
        if (value != value) return 1;                                  \
        if (last && value == best) return 1;                           \
        return is_min ? value < best : value > best;                   \
    }

#define PLACE(name, better, type)                                                \
    INLINE int64_t name(const arg_max_record *r, const type *row) {              \
        int64_t place = 0;                                                       \
        for (int64_t i = 1; i < r->width; i++) {                                 \
            const type value = row[i * r->inner], best = row[place * r->inner];  \
            if (better(value, best, r->is_min, r->last)) place = i;              \
        }                                                                        \
        return place;                                                            \
    }

BETTER(better_float, float)
BETTER(better_integer, int64_t)
PLACE(place_of_float, better_float, float)
PLACE(place_of_integer, better_integer, int64_t)

void arg_max(const void *record, const call *c, int64_t part, int64_t parts) {
    const arg_max_record *r = record;
    const void *x = at(c, r->x);
    int64_t *out = at(c, r->out);
    SHARE(r->outer * r->inner);
    for (int64_t u = first; u < behind; u++) {
        const int64_t start = u / r->inner * r->width * r->inner + u % r->inner;
        out[u] = r->is_int ? place_of_integer(r, (const int64_t *)x + start)
                           : place_of_float(r, (const float *)x + start);
    }
}
