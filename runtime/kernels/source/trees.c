// Tree ensembles: each row descends every tree to a leaf, whose votes are aggregated.
#include <math.h>

#include "call.h"

enum {
    WALKS = 8,    // traversals interleaved, to overlap the latencies of their loads
    HEADER = 64,  // bytes of `packed` before the depths: a flag, 0 where it holds no nodes
    LOOK = 4,     // levels between checks whether all traversals have reached leaves
};

// A packed node: its children are adjacent, at `next` and behind it; the second is taken
// where the row's key is greater than `key`. A leaf is its own child and holds its index.
// `feature` and `next` are byte offsets, so that addresses need no multiplication.
typedef struct {
    int32_t key;
    uint32_t feature, next;
    int32_t leaf;
} packed_node;
typedef struct {
    int64_t key;
    uint32_t feature, next;
    int64_t leaf;
} packed_double;

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

// Hides a truth value from the optimizer, so that it selects by arithmetic: a branch on it
// would often be mispredicted.
INLINE uint32_t number_of(uint32_t truth) {
    __asm__("" : "+r"(truth));
    return truth;
}

// Traverses `some` trees from the nodes in `place`, which become ~leaf. row: the offset of
// each traversal's row in x. Returns 1 where an index is out of range or the nodes form a
// cycle; such a traversal ends at leaf 0.
INLINE int64_t descended(const trees_record *r, const forest *f, const int64_t *row,
                         int64_t *place, int64_t some, int has_modes, int has_missing,
                         int is_double) {
    const int64_t *sides[2] = {f->no, f->yes};
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
            place[i] = sides[number_of((uint32_t)is)][n];
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

// Adds a leaf's votes to a row of totals; returns 1 where a target is out of range.
INLINE int64_t voted(const trees_record *r, const forest *f, int64_t leaf, double *row,
                     int is_double) {
    for (int64_t v = leaf * r->votes; v < (leaf + 1) * r->votes; v++) {
        const int64_t target = f->targets[v];
        if ((uint64_t)target > (uint64_t)r->outputs) return 1;
        row[target] = joined(r->how, row[target], number(f->weights, v, is_double));
    }
    return 0;
}

INLINE void emptied(const trees_record *r, int64_t low, int64_t high, double *total) {
    const int64_t columns = r->outputs + 1;
    const double start = r->how == VOTES_SUM   ? 0
                         : r->how == VOTES_MIN ? (double)INFINITY
                                               : -(double)INFINITY;
    for (int64_t i = low * columns; i < high * columns; i++) total[i] = start;
}

// Aggregates trees `from` to `to` over rows `low` to `high`: total (rows, outputs + 1). The
// last column takes the votes for no output.
static int64_t counted(const trees_record *r, const forest *f, int64_t from, int64_t to,
                       int64_t low, int64_t high, double *total) {
    const int64_t columns = r->outputs + 1;
    emptied(r, low, high, total);
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

// Reduces partial totals (groups, rows, outputs + 1) over the groups: out (rows, outputs).
static void joined_groups(const double *total, void *out, int64_t low, int64_t high,
                          int64_t rows, int64_t outputs, int64_t groups, int64_t how,
                          int64_t divisor, int64_t is_double) {
    for (int64_t i = low; i < high; i++)
        for (int64_t k = 0; k < outputs; k++) {
            double sum = total[i * (outputs + 1) + k];
            for (int64_t g = 1; g < groups; g++)
                sum = joined(how, sum, total[(g * rows + i) * (outputs + 1) + k]);
            if (how != VOTES_SUM && isinf(sum)) sum = 0;  // no votes
            sum /= (double)divisor;
            if (is_double)
                ((double *)out)[i * outputs + k] = sum;
            else
                ((float *)out)[i * outputs + k] = (float)sum;
        }
}

// Maps the floats of up to WALKS rows to integers of the same order, (copies, width, WALKS).
// NaN becomes the greatest key; in a second copy, for nodes that send missing values where
// small numbers go, the least.
#define KEYS(NAME, T, INFINITE, MOST)                                                      \
    static void NAME(const T *x, T *keys, int64_t rows, int64_t width, int64_t copies) {   \
        for (int64_t i = 0; i < width; i++)                                                \
            for (int64_t k = 0; k < rows; k++) {                                           \
                const T bits = x[k * width + i], size = bits & MOST;                       \
                const T negative = -(bits < 0), is_nan = -(size > INFINITE);               \
                const T key = ((size ^ negative) - negative) & ~is_nan;                    \
                keys[i * WALKS + k] = key | (MOST & is_nan);                               \
                if (copies == 2) keys[(width + i) * WALKS + k] = key | (~MOST & is_nan);   \
            }                                                                              \
    }
KEYS(float_keys, int32_t, 0x7f800000, INT32_MAX)
KEYS(double_keys, int64_t, 0x7ff0000000000000, INT64_MAX)

#define AT(T, base, bytes) (*(const T *)((const char *)(base) + (bytes)))

// Moves all traversals down one level. lanes: 1 where each has a row of its own, whose keys
// are adjacent.
#define LEVEL(T, NODE, lanes)                                                              \
    UNROLLED for (int k = 0; k < WALKS; k++) {                                             \
        const NODE *n = &AT(NODE, nodes, p[k]);                                            \
        const T key = AT(T, x + lanes * k, n->feature);                                    \
        p[k] = n->next + (uint32_t)sizeof *n * number_of(key > n->key);                    \
    }

// Traverses from `place` to leaves: one tree for WALKS rows (lanes: 1), or WALKS trees for
// one row (0).
#define WALK(NAME, T, NODE, lanes)                                                         \
    static __attribute__((noinline)) void NAME(const char *nodes, const T *x,              \
                                               int32_t *place, int64_t depth) {            \
        uint32_t p[WALKS], last[WALKS], going = 1;                                         \
        UNROLLED for (int k = 0; k < WALKS; k++)                                           \
            p[k] = (uint32_t)place[k] * (uint32_t)sizeof(NODE);                            \
        for (int64_t d = depth % LOOK; d > 0; d--) { LEVEL(T, NODE, lanes) }               \
        for (int64_t d = depth / LOOK; d > 0 && going; d--) {                              \
            for (int i = 0; i < LOOK - 1; i++) { LEVEL(T, NODE, lanes) }                   \
            memcpy(last, p, sizeof p);                                                     \
            LEVEL(T, NODE, lanes)                                                          \
            going = 0;                                                                     \
            UNROLLED for (int k = 0; k < WALKS; k++) going |= p[k] ^ last[k];              \
        }                                                                                  \
        UNROLLED for (int k = 0; k < WALKS; k++)                                           \
            place[k] = (int32_t)AT(NODE, nodes, p[k]).leaf;                                \
    }
WALK(walk_rows, int32_t, packed_node, 1)
WALK(walk_trees, int32_t, packed_node, 0)
WALK(walk_rows_double, int64_t, packed_double, 1)
WALK(walk_trees_double, int64_t, packed_double, 0)

// As `counted`, with packed nodes and the integer keys of these rows.
INLINE int64_t counted_packed(const trees_record *r, const forest *f, const char *packed,
                              const char *keys, int64_t from, int64_t to, int64_t low,
                              int64_t high, double *total, int is_double) {
    const int32_t *depths = (const int32_t *)(packed + HEADER);
    const char *nodes = packed + HEADER + (4 * r->trees + HEADER - 1) / HEADER * HEADER;
    const int64_t columns = r->outputs + 1,
                  pitch = r->copies * r->width * WALKS * (is_double ? 8 : 4);
    int64_t fault = 0;
    int32_t place[WALKS];
    if (high - low < WALKS / 2) {  // few rows: WALKS trees at a time for each
        for (int64_t i = low; i < high; i++)
            for (int64_t tree = from; tree < to; tree += WALKS) {
                const int64_t some = to - tree < WALKS ? to - tree : WALKS;
                int64_t depth = 0;
                for (int64_t k = 0; k < WALKS; k++) {
                    const int64_t own = tree + (k < some ? k : 0);
                    place[k] = (int32_t)own;
                    if (depths[own] > depth) depth = depths[own];
                }
                if (is_double)
                    walk_trees_double(nodes, (const int64_t *)keys + (i - low), place, depth);
                else
                    walk_trees(nodes, (const int32_t *)keys + (i - low), place, depth);
                for (int64_t k = 0; k < some; k++)
                    fault |= voted(r, f, place[k], total + i * columns, is_double);
            }
        return fault;
    }
    for (int64_t tree = from; tree < to; tree++)
        for (int64_t i = low; i < high; i += WALKS) {
            const int64_t some = high - i < WALKS ? high - i : WALKS;
            for (int64_t k = 0; k < WALKS; k++) place[k] = (int32_t)tree;
            const char *own = keys + (i - low) / WALKS * pitch;
            if (is_double)
                walk_rows_double(nodes, (const int64_t *)own, place, depths[tree]);
            else
                walk_rows(nodes, (const int32_t *)own, place, depths[tree]);
            for (int64_t k = 0; k < some; k++)
                fault |= voted(r, f, place[k], total + (i + k) * columns, is_double);
        }
    return fault;
}

// As `counted`, with packed nodes: makes the keys for a block of rows at a time.
static int64_t counted_by_keys(const trees_record *r, const forest *f, const char *packed,
                               char *keys, int64_t from, int64_t to, int64_t low,
                               int64_t high, double *total) {
    const int64_t pitch = r->copies * r->width * WALKS * (r->is_double ? 8 : 4);
    int64_t fault = 0;
    for (int64_t start = low, end; start < high; start = end) {
        end = start + r->block < high ? start + r->block : high;
        for (int64_t i = start; i < end; i += WALKS) {
            const int64_t some = end - i < WALKS ? end - i : WALKS;
            char *own = keys + (i - start) / WALKS * pitch;
            if (r->is_double)
                double_keys((const int64_t *)f->x + i * r->width, (int64_t *)own, some,
                            r->width, r->copies);
            else
                float_keys((const int32_t *)f->x + i * r->width, (int32_t *)own, some,
                           r->width, r->copies);
        }
        emptied(r, start, end, total);
        fault |= r->is_double
                     ? counted_packed(r, f, packed, keys, from, to, start, end, total, 1)
                     : counted_packed(r, f, packed, keys, from, to, start, end, total, 0);
    }
    return fault;
}

// A unit of work is one row in one group of trees. `fault` is set where a node or a vote is
// out of range: the caller then falls back to the operator. With more than one group a
// `votes` record reduces the partial totals.
void trees(const void *record, const call *c, int64_t part, int64_t parts) {
    const trees_record *r = record;
    const forest f = {
        at(c, r->x), at(c, r->thresholds), at(c, r->weights), at(c, r->roots),
        at(c, r->features), at(c, r->yes), at(c, r->no), at(c, r->targets),
        at(c, r->modes), at(c, r->missing),
    };
    double *space = at(c, r->space);
    const char *packed = at(c, r->packed);
    if (packed && !*(const int64_t *)packed) packed = 0;
    char *keys = packed ? (char *)at(c, r->keys) + part * r->room : 0;
    int64_t fault = 0;
    SHARE(r->groups * r->rows);
    for (int64_t u = first, next; u < behind; u = next) {
        const int64_t group = u / r->rows, start = group * r->rows;
        next = start + r->rows < behind ? start + r->rows : behind;
        const int64_t from = r->trees * group / r->groups,
                      to = r->trees * (group + 1) / r->groups;
        const int64_t low = u - start, high = next - start;
        double *total = space + start * (r->outputs + 1);
        fault |= packed ? counted_by_keys(r, &f, packed, keys, from, to, low, high, total)
                        : counted(r, &f, from, to, low, high, total);
    }
    if (fault) *(int64_t *)at(c, r->fault) = 1;
    if (r->groups == 1)
        joined_groups(space, at(c, r->out), first, behind, r->rows, r->outputs, 1, r->how,
                      r->divisor, r->is_double);
}

// Reduction of the groups' partial totals.
void votes(const void *record, const call *c, int64_t part, int64_t parts) {
    const votes_record *r = record;
    SHARE(r->rows);
    joined_groups(at(c, r->space), at(c, r->out), first, behind, r->rows, r->outputs,
                  r->groups, r->how, r->divisor, r->is_double);
}
