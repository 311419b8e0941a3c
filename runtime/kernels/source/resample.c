// Along one axis: places taken by number, or sums of a few of them with weights.
#include "call.h"

static void weighed(const resample_record *r, const float *x, const int32_t *index,
                    const float *weight, float *out) {
    for (int64_t j = 0; j < r->inner; j += WIDTH) {
        const int64_t some = r->inner - j < WIDTH ? r->inner - j : WIDTH;
        vec acc = {0};
        for (int64_t t = 0; t < r->taps; t++) {
            const float *p = x + index[t] * r->inner + j;
            acc += weight[t] * (some == WIDTH ? load(p) : load_some(p, some));
        }
        store_some(out + j, acc, some);
    }
}

// Single elements, one after the other.
static void picked(const resample_record *r, const float *x, const int32_t *index,
                   float *out, int64_t first, int64_t behind) {
    int64_t place = first % r->places;
    x += first / r->places * r->size;
    for (int64_t u = first; u < behind; u++) {
        out[u] = x[index[place]];
        if (++place == r->places) place = 0, x += r->size;
    }
}

// x (outer, size, inner) -> out (outer, places, inner); a unit is one place.
void resample(const void *record, const call *c, int64_t part, int64_t parts) {
    const resample_record *r = record;
    const float *weight = at(c, r->weight);
    const int32_t *index = at(c, r->index);
    SHARE(r->outer * r->places);
    if (!weight && r->inner == 1) {
        picked(r, at(c, r->x), index, at(c, r->out), first, behind);
        return;
    }
    for (int64_t u = first; u < behind; u++) {
        const int64_t place = u % r->places * r->taps;
        const float *x = (const float *)at(c, r->x) + u / r->places * r->size * r->inner;
        float *out = (float *)at(c, r->out) + u * r->inner;
        if (weight)
            weighed(r, x, index + place, weight + place, out);
        else
            memcpy(out, x + index[place] * r->inner, 4 * (size_t)r->inner);
    }
}
