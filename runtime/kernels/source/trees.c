// Decision trees: rows go from node to node until they are at a leaf, whose votes count.
#include <math.h>

#include "call.h"

enum { WALKS = 8 };  // walks at a time, each of which waits for memory of its own

typedef struct {
    const void *x, *thresholds, *weights;  // float, or double
    const int64_t *roots, *features, *yes, *no, *targets;
    const uint8_t *modes, *missing;
} forest;

INLINE double number(const void *from, int64_t i, int is_double) {
    return is_double ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

INLINE int64_t says_yes(int mode, double value, double threshold) {
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

// Every place becomes ~leaf. Returns whether an index was out of range or nodes form a
// cycle; such a walk is at leaf 0.
// row: where each walk's row begins in x.
INLINE int64_t descended(const trees_record *r, const forest *f, const int64_t *row,
                         int64_t *place, int64_t some, int has_modes, int has_missing,
                         int is_double) {
    int64_t fault = 0, going = 1, steps = 0;
    for (; going && steps <= r->nodes; steps++) {
        going = 0;
        for (int64_t i = 0; i < some; i++) {
            const int64_t n = place[i];
            if (n < 0) continue;
            if (n >= r->nodes || (uint64_t)f->features[n] >= (uint64_t)r->width) {
                fault = 1, place[i] = -1;
                continue;
            }
            const double value = number(f->x, row[i] + f->features[n], is_double);
            const int mode = has_modes ? f->modes[n] : 0;
            int64_t is = says_yes(mode, value, number(f->thresholds, n, is_double));
            if (has_missing && value != value) is |= f->missing[n];
            const int64_t *side = is ? f->yes : f->no;
            place[i] = side[n];
            going |= place[i] >= 0;
        }
    }
    for (int64_t i = 0; i < some; i++)
        if (place[i] >= 0 || ~place[i] >= r->leaves) fault = 1, place[i] = -1;
    return fault;
}

INLINE int64_t descended_as(const trees_record *r, const forest *f, const int64_t *row,
                            int64_t *place, int64_t some, int is_double) {
    if (f->modes && f->missing) return descended(r, f, row, place, some, 1, 1, is_double);
    if (f->modes) return descended(r, f, row, place, some, 1, 0, is_double);
    if (f->missing) return descended(r, f, row, place, some, 0, 1, is_double);
    return descended(r, f, row, place, some, 0, 0, is_double);
}

INLINE double joined(int64_t how, double total, double vote) {
    if (how == VOTES_SUM) return total + vote;
    const int is_better = how == VOTES_MIN ? vote < total : vote > total;
    return is_better || vote != vote ? vote : total;
}

// Rows `low` to `high` in trees `from` to `to`; total (rows, outputs + 1).
static int64_t counted(const trees_record *r, const forest *f, int64_t from, int64_t to,
                       int64_t low, int64_t high, double *total) {
    const int64_t columns = r->outputs + 1;
    const double start = r->how == VOTES_SUM   ? 0
                         : r->how == VOTES_MIN ? (double)INFINITY
                                               : -(double)INFINITY;
    for (int64_t i = low * columns; i < high * columns; i++) total[i] = start;
    int64_t tree = from, at_row = low, fault = 0;
    while (tree < to) {
        int64_t row[WALKS], place[WALKS], rows[WALKS], some = 0;
        for (; some < WALKS && tree < to; some++) {
            rows[some] = at_row;
            row[some] = at_row * r->width;
            place[some] = f->roots[tree];
            if (++at_row == high) at_row = low, tree++;
        }
        fault |= r->is_double ? descended_as(r, f, row, place, some, 1)
                              : descended_as(r, f, row, place, some, 0);
        for (int64_t i = 0; i < some && !fault; i++) {
            const int64_t first = ~place[i] * r->votes;
            for (int64_t v = first; v < first + r->votes; v++) {
                const int64_t target = f->targets[v];
                if ((uint64_t)target >= (uint64_t)columns) return 1;
                double *sum = total + rows[i] * columns + target;
                *sum = joined(r->how, *sum, number(f->weights, v, r->is_double != 0));
            }
        }
    }
    return fault;
}

// out (rows, outputs): the totals (groups, rows, outputs + 1) of groups of trees joined.
static void joined_groups(const double *total, void *out, int64_t low, int64_t high,
                          int64_t rows, int64_t outputs, int64_t groups, int64_t how,
                          int64_t divisor, int64_t is_double) {
    for (int64_t i = low; i < high; i++)
        for (int64_t k = 0; k < outputs; k++) {
            double sum = total[i * (outputs + 1) + k];
            for (int64_t g = 1; g < groups; g++)
                sum = joined(how, sum, total[(g * rows + i) * (outputs + 1) + k]);
            if (how != VOTES_SUM && isinf(sum)) sum = 0;  // nobody voted
            sum /= (double)divisor;
            if (is_double)
                ((double *)out)[i * outputs + k] = sum;
            else
                ((float *)out)[i * outputs + k] = (float)sum;
        }
}

// A unit is one row in one group of trees. `fault` reports nodes or votes that are none;
// the caller then computes without kernels. More than one group: record `votes` follows.
void trees(const void *record, const call *c, int64_t part, int64_t parts) {
    const trees_record *r = record;
    const forest f = {
        at(c, r->x), at(c, r->thresholds), at(c, r->weights), at(c, r->roots),
        at(c, r->features), at(c, r->yes), at(c, r->no), at(c, r->targets),
        at(c, r->modes), at(c, r->missing),
    };
    double *space = at(c, r->space);
    int64_t fault = 0;
    SHARE(r->groups * r->rows);
    for (int64_t u = first, next; u < behind; u = next) {
        const int64_t group = u / r->rows, start = group * r->rows;
        next = start + r->rows < behind ? start + r->rows : behind;
        fault |= counted(r, &f, r->trees * group / r->groups,
                         r->trees * (group + 1) / r->groups, u - start, next - start,
                         space + start * (r->outputs + 1));
    }
    if (fault) *(int64_t *)at(c, r->fault) = 1;
    if (r->groups == 1)
        joined_groups(space, at(c, r->out), first, behind, r->rows, r->outputs, 1, r->how,
                      r->divisor, r->is_double);
}

void votes(const void *record, const call *c, int64_t part, int64_t parts) {
    const votes_record *r = record;
    SHARE(r->rows);
    joined_groups(at(c, r->space), at(c, r->out), first, behind, r->rows, r->outputs,
                  r->groups, r->how, r->divisor, r->is_double);
}
