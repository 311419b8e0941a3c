// Windows of maps: the greatest element of each, and where it is; the first of equals,
// and NaN above all.
#include "call.h"

// From `from[i]` to before `behind[i]`: the elements that place i of an axis sees.
typedef struct {
    const int32_t *from, *behind;
} line;

INLINE float larger(float a, float b) { return (a > b) | (a != a) ? a : b; }

// n windows of `kernel` elements, `step` apart; a known step makes vectors of it.
INLINE void evenly(const float *restrict x, int64_t n, int64_t kernel, int64_t step,
                   float *restrict out) {
    for (int64_t i = 0; i < n; i++) out[i] = x[i * step];
    for (int64_t k = 1; k < kernel; k++)
        for (int64_t i = 0; i < n; i++) out[i] = larger(out[i], x[i * step + k]);
}

// Windows along a row: those that are alike, from `even_first` on, and the others.
static void of_row(const max_windows_record *r, const float *x, line windows, float *out) {
    const int64_t first = r->even_first, n = r->even, kernel = r->length, step = r->step;
    for (int64_t i = 0; i < r->place2; i++) {
        if (i == first && n) i += n;
        if (i == r->place2) break;
        float best = x[windows.from[i]];
        for (int64_t k = windows.from[i] + 1; k < windows.behind[i]; k++)
            best = larger(best, x[k]);
        out[i] = best;
    }
    if (!n) return;
    const float *from = x + windows.from[first];
    switch (step) {
        case 1: evenly(from, n, kernel, 1, out + first); break;
        case 2: evenly(from, n, kernel, 2, out + first); break;
        case 3: evenly(from, n, kernel, 3, out + first); break;
        default: evenly(from, n, kernel, step, out + first);
    }
}

// The greatest elements of windows of a plane; `room` holds a row of it.
static void greatest(const max_windows_record *r, const float *x, const int64_t *from,
                     const int64_t *behind, line last, float *restrict room, float *out) {
    const float *row = x + (from[0] * r->size1 + from[1]) * r->size2;
    if (behind[0] - from[0] > 1 || behind[1] - from[1] > 1) {
        memcpy(room, row, 4 * (size_t)r->size2);
        for (int64_t a = from[0]; a < behind[0]; a++)
            for (int64_t b = from[1]; b < behind[1]; b++) {
                const float *restrict other = x + (a * r->size1 + b) * r->size2;
                if (other == row) continue;
                for (int64_t k = 0; k < r->size2; k++) room[k] = larger(room[k], other[k]);
            }
        row = room;
    }
    of_row(r, row, last, out);
}

// The place in the plane x of the first element of a window that is `best`.
INLINE int64_t place_of(const max_windows_record *r, const float *x, const int64_t *from,
                        const int64_t *behind, float best) {
    const int is_nan = best != best;
    for (int64_t a = from[0]; a < behind[0]; a++)
        for (int64_t b = from[1]; b < behind[1]; b++) {
            const int64_t row = (a * r->size1 + b) * r->size2;
            for (int64_t k = row + from[2]; k < row + behind[2]; k++)
                if ((x[k] == best) | (is_nan & (x[k] != x[k]))) return k;
        }
    return 0;
}

// Shares are planes.
void max_windows(const void *record, const call *c, int64_t part, int64_t parts) {
    const max_windows_record *r = record;
    const int64_t counts[3] = {r->place0, r->place1, r->place2};
    line lines[3];
    const int32_t *table = at(c, r->windows);
    for (int d = 0; d < 3; d++) {
        lines[d] = (line){table, table + counts[d]};
        table += 2 * counts[d];
    }
    const int64_t size = r->size0 * r->size1 * r->size2;
    float *room = (float *)at(c, r->space) + part * r->room;
    int64_t *places = at(c, r->places);
    SHARE(r->planes);
    int64_t place = first * counts[0] * counts[1] * counts[2];
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * size;
        for (int64_t i = 0; i < counts[0]; i++)
            for (int64_t j = 0; j < counts[1]; j++) {
                float *out = (float *)at(c, r->out) + place;
                int64_t from[3] = {lines[0].from[i], lines[1].from[j], 0};
                int64_t ends[3] = {lines[0].behind[i], lines[1].behind[j], 0};
                greatest(r, x, from, ends, lines[2], room, out);
                for (int64_t k = 0; places && k < counts[2]; k++) {
                    from[2] = lines[2].from[k], ends[2] = lines[2].behind[k];
                    places[place + k] = u * size + place_of(r, x, from, ends, out[k]);
                }
                place += counts[2];
            }
    }
}
