// Along one axis: places taken by number, or sums of a few of them with weights. A sum
// ends before a place that is negative: what is not in it may be infinite.
#include "call.h"

static void weighed(const resample_record *r, const float *x, const int32_t *index,
                    const float *weight, float *out) {
    for (int64_t j = 0; j < r->inner; j += WIDTH) {
        const int64_t some = r->inner - j < WIDTH ? r->inner - j : WIDTH;
        vec acc = {0};
        for (int64_t t = 0; t < r->taps && index[t] >= 0; t++) {
            const float *p = x + index[t] * r->inner + j;
            acc += weight[t] * (some == WIDTH ? load(p) : load_some(p, some));
        }
        store_some(out + j, acc, some);
    }
}

// Single elements, as sums of others.
static void weighed_singles(const resample_record *r, const float *x,
                            const int32_t *index, const float *weight, float *out,
                            int64_t first, int64_t behind) {
    const int64_t taps = r->taps, end = r->places * taps;
    int64_t tap = first % r->places * taps;
    x += first / r->places * r->size;
    for (int64_t u = first; u < behind; u++) {
        float sum = 0;
        for (int64_t t = tap; t < tap + taps && index[t] >= 0; t++)
            sum += weight[t] * x[index[t]];
        out[u] = sum;
        if ((tap += taps) == end) tap = 0, x += r->size;
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
    if (r->inner == 1) {
        const float *x = at(c, r->x);
        float *out = at(c, r->out);
        if (weight)
            weighed_singles(r, x, index, weight, out, first, behind);
        else
            picked(r, x, index, out, first, behind);
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
