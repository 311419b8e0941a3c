// Decision trees: rows go from node to node until they are at a leaf.
#include "call.h"

enum { WALKS = 8 };  // walks at a time, each of which waits for memory of its own

INLINE int64_t says_yes(int mode, float value, float threshold) {
    switch (mode) {
        case 0: return value <= threshold;
        case 1: return value < threshold;
        case 2: return value >= threshold;
        case 3: return value > threshold;
        case 4: return value == threshold;
        case 5: return value != threshold;
        default: return 0;
    }
}

// A unit is one row in one tree; out (trees, rows) is the leaf that it reaches. `fault`
// reports an index out of range, or nodes that form a cycle; the caller then falls
// back.
void trees(const void *record, const call *c, int64_t part, int64_t parts) {
    const trees_record *r = record;
    const float *x = at(c, r->x), *thresholds = at(c, r->thresholds);
    const int64_t *roots = at(c, r->roots), *features = at(c, r->features);
    const int64_t *yes = at(c, r->yes), *no = at(c, r->no);
    const uint8_t *modes = at(c, r->modes), *missing = at(c, r->missing);
    int64_t *out = at(c, r->out);
    int64_t fault = 0;
    SHARE(r->trees * r->rows);
    for (int64_t u = first; u < behind; u += WALKS) {
        const int64_t some = behind - u < WALKS ? behind - u : WALKS;
        const float *row[WALKS];
        int64_t place[WALKS], steps = 0, going = 1;
        for (int64_t i = 0; i < some; i++) {
            row[i] = x + (u + i) % r->rows * r->width;
            place[i] = roots[(u + i) / r->rows];
        }
        for (; going && steps <= r->nodes; steps++) {
            going = 0;
            for (int64_t i = 0; i < some; i++) {
                const int64_t n = place[i];
                if (n < 0) continue;
                if (n >= r->nodes || (uint64_t)features[n] >= (uint64_t)r->width) {
                    fault = 1, place[i] = -1;
                    continue;
                }
                const float value = row[i][features[n]];
                int64_t is = says_yes(modes ? modes[n] : 0, value, thresholds[n]);
                if (missing && missing[n]) is |= value != value;
                const int64_t *side = is ? yes : no;
                place[i] = side[n];
                going |= place[i] >= 0;
            }
        }
        for (int64_t i = 0; i < some; i++) {
            if (place[i] >= 0 || ~place[i] >= r->leaves) fault = 1, place[i] = -1;
            out[u + i] = ~place[i];
        }
    }
    if (fault) *(int64_t *)at(c, r->fault) = 1;
}
