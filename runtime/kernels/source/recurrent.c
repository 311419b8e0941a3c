// Recurrent layers over a whole sequence: LSTM, GRU and plain ones, one direction.
//
// Weights are (block of LANES hidden units, hidden unit before, gate, LANES), with the
// gates in the order i f o c, or z r h: one pass over a block's weights gives all gates
// of its units. gate0 to gate3: their positions in the inputs' share.
#include "call.h"
#include "functions.h"
#include "products.h"
#include "units.h"

// Examples whose gates are computed together, from one pass over the weights: as many as
// have room in registers. Up to TOGETHER go through time together, so that all of them
// take a block's weights before any takes the next: from the second-level cache, but for
// the first ones.
enum {
    EXAMPLES = WIDTH == 16 ? 8 : 6,
    SUMS = WIDTH == 8 ? 12 : 24,  // vectors of sums in registers
    TOGETHER = 32,
    FURTHER = 16  // rows of weights from a prefetch to the load of it
};

// One example at one step.
typedef struct {
    const recurrent_record *r;
    const float *bias;
    const float *x;      // this step's share of the inputs, (gates, hidden)
    const float *before; // h, with zeros up to whole blocks
    float *h, *c;        // this example's state
    float *hs, *cs;      // where this step's results go
    float *kept;         // where its gates go, or 0
    float *acted;        // where what a GRU's reset gate acts on goes, or 0
} moment;

// Number k of an example's h. Two pointers reach eight examples, which leaves registers.
INLINE vec input(const float *const h[2], int64_t apart, int e, int64_t k) {
    return all(h[e / 4][e % 4 * apart + k]);
}

// acc of gates `first` to `first + some` of one block of R examples: h times weights.
INLINE void gates_of(const int R, const int first, const int some, const int gates,
                     const moment *m, const float *w, vec acc[EXAMPLES][4][PARTS]) {
    const float *const h[2] = {m[0].before, m[R > 4 ? 4 : 0].before};
    const int64_t apart = R > 1 ? m[1].before - m[0].before : 0;
    vec sums[EXAMPLES][4][PARTS];
    UNROLLED for (int e = 0; e < R; e++) UNROLLED for (int g = 0; g < some; g++)
        UNROLLED for (int v = 0; v < PARTS; v++) sums[e][g][v] = (vec){0};
    w += first * LANES;
    for (int64_t k = 0; k < m->r->hidden; k++, w += gates * LANES) {
        vec in[EXAMPLES], row[4][PARTS];
        if (R <= 4) {  // few inputs wait in registers, or else few weights
            UNROLLED for (int e = 0; e < R; e++) in[e] = input(h, apart, e, k);
            UNROLLED for (int g = 0; g < some; g++)
                UNROLLED for (int v = 0; v < PARTS; v++) {
                    row[g][v] = load(w + g * LANES + v * WIDTH);
                    UNROLLED for (int e = 0; e < R; e++)
                        sums[e][g][v] += in[e] * row[g][v];
                }
        } else {
            UNROLLED for (int g = 0; g < some; g++) {
                __builtin_prefetch(w + (FURTHER * gates + g) * LANES, 0, 3);
                UNROLLED for (int v = 0; v < PARTS; v++)
                    row[g][v] = load(w + g * LANES + v * WIDTH);
            }
            UNROLLED for (int e = 0; e < R; e++) {
                in[e] = input(h, apart, e, k);
                UNROLLED for (int g = 0; g < some; g++)
                    UNROLLED for (int v = 0; v < PARTS; v++)
                        sums[e][g][v] += in[e] * row[g][v];
            }
        }
    }
    UNROLLED for (int e = 0; e < R; e++) UNROLLED for (int g = 0; g < some; g++)
        UNROLLED for (int v = 0; v < PARTS; v++) acc[e][first + g][v] = sums[e][g][v];
}

// The inputs' share of gate g for the units from `start` on.
INLINE vec share(const moment *m, int64_t g, int64_t start) {
    const int64_t n = m->r->hidden;
    return units_at(m->x + g * n + start, n - start);
}
INLINE vec bias_of(const moment *m, int64_t g, int64_t start) {
    const int64_t n = m->r->hidden;
    return m->bias ? units_at(m->bias + g * n + start, n - start) : all(0);
}

static void lstm_block(const moment *m, int64_t j, vec acc[4][PARTS]) {
    const recurrent_record *r = m->r;
    vec s[PARTS][4], n[PARTS], c[PARTS], bent[PARTS];  // s: the gates i, f, o
    UNROLLED for (int v = 0; v < PARTS; v++) {
        const int64_t u = j + v * WIDTH;
        s[v][0] = -(acc[0][v] + share(m, r->gate0, u));
        s[v][1] = -(acc[1][v] + share(m, r->gate1, u));
        s[v][2] = -(acc[2][v] + share(m, r->gate2, u));
        n[v] = acc[3][v] + share(m, r->gate3, u);
        s[v][3] = n[v] + n[v];
        exponentials_for_sum(4, s[v]);
        UNROLLED for (int g = 0; g < 3; g++) s[v][g] = reciprocal(1.f + s[v][g]);
        tangents_of_exponentials(1, n + v, s[v] + 3);
        bent[v] = c[v] = s[v][1] * load(m->c + u) + s[v][0] * n[v];
    }
    hyperbolic_tangents(PARTS, bent);
    UNROLLED for (int v = 0; v < PARTS; v++) {
        const int64_t u = j + v * WIDTH, left = r->hidden - u;
        const vec h = s[v][2] * bent[v];
        store(m->c + u, c[v]);
        store(m->h + u, h);
        put_units(m->hs + u, h, left);
        put_units(m->cs + u, c[v], left);
        if (!m->kept) continue;
        put_units(m->kept + r->gate0 * r->hidden + u, s[v][0], left);
        put_units(m->kept + r->gate1 * r->hidden + u, s[v][1], left);
        put_units(m->kept + r->gate2 * r->hidden + u, s[v][2], left);
        put_units(m->kept + r->gate3 * r->hidden + u, n[v], left);
    }
}

static void gru_block(const moment *m, int64_t j, vec acc[4][PARTS]) {
    const recurrent_record *r = m->r;
    vec s[PARTS][2], own[PARTS], n[PARTS];  // s: the gates z, r
    UNROLLED for (int v = 0; v < PARTS; v++) {
        const int64_t u = j + v * WIDTH;
        s[v][0] = acc[0][v] + bias_of(m, r->gate0, u) + share(m, r->gate0, u);
        s[v][1] = acc[1][v] + bias_of(m, r->gate1, u) + share(m, r->gate1, u);
        sigmoids(2, s[v]);
        own[v] = acc[2][v] + bias_of(m, 2, u);
        n[v] = s[v][1] * own[v] + share(m, 2, u);
    }
    hyperbolic_tangents(PARTS, n);
    UNROLLED for (int v = 0; v < PARTS; v++) {
        const int64_t u = j + v * WIDTH, left = r->hidden - u;
        const vec h = (load(m->before + u) - n[v]) * s[v][0] + n[v];
        store(m->h + u, h);
        put_units(m->hs + u, h, left);
        if (m->acted) put_units(m->acted + u, own[v], left);
        if (!m->kept) continue;
        put_units(m->kept + r->gate0 * r->hidden + u, s[v][0], left);
        put_units(m->kept + r->gate1 * r->hidden + u, s[v][1], left);
        put_units(m->kept + 2 * r->hidden + u, n[v], left);
    }
}

static void plain_block(const moment *m, int64_t j, vec acc[4][PARTS]) {
    const recurrent_record *r = m->r;
    UNROLLED for (int v = 0; v < PARTS; v++) {
        const int64_t u = j + v * WIDTH;
        vec z = acc[0][v] + share(m, 0, u);
        vec h = r->mode == CELL_RELU ? at_least(all(0), z) : hyperbolic_tangent(z);
        store(m->h + u, h);
        put_units(m->hs + u, h, r->hidden - u);
    }
}

// How many gates' sums have room in registers: all, half of four, or one.
INLINE int at_once(const int R, const int gates) {
    const int most = SUMS / (R * PARTS);
    return gates <= most ? gates : gates == 4 && most > 1 ? 2 : 1;
}

// The units of block j of R examples, of which all gates are computed first.
INLINE void some_units(const int R, const moment *m, const float *weight, int64_t j) {
    const recurrent_record *r = m->r;
    vec acc[EXAMPLES][4][PARTS];
    const float *w = weight + j * r->hidden * r->gates;
    switch (r->mode) {
    case CELL_LSTM:
        UNROLLED for (int g = 0; g < 4; g += at_once(R, 4))
            gates_of(R, g, at_once(R, 4), 4, m, w, acc);
        for (int e = 0; e < R; e++) lstm_block(m + e, j, acc[e]);
        break;
    case CELL_GRU:
        UNROLLED for (int g = 0; g < 3; g += at_once(R, 3))
            gates_of(R, g, at_once(R, 3), 3, m, w, acc);
        for (int e = 0; e < R; e++) gru_block(m + e, j, acc[e]);
        break;
    default:
        gates_of(R, 0, 1, 1, m, w, acc);
        for (int e = 0; e < R; e++) plain_block(m + e, j, acc[e]);
    }
}

static void units(int64_t examples, const moment *m, const float *weight, int64_t j) {
    switch (examples) {
    case 1: some_units(1, m, weight, j); break;
    case 2: some_units(2, m, weight, j); break;
    case 3: some_units(3, m, weight, j); break;
    case 4: some_units(4, m, weight, j); break;
    case 5: some_units(5, m, weight, j); break;
#if WIDTH == 16
    case 6: some_units(6, m, weight, j); break;
    case 7: some_units(7, m, weight, j); break;
#endif
    default: some_units(EXAMPLES, m, weight, j);
    }
}

// Where an example's step t reads and writes.
static void at_step(moment *m, const call *c, int64_t example, int64_t t) {
    const recurrent_record *r = m->r;
    const int64_t n = r->hidden, row = t * r->count + example;
    m->x = (const float *)at(c, r->x) + row * r->gates * n;
    m->hs = (float *)at(c, r->hs) + row * n;
    if (r->c >= 0) m->cs = (float *)at(c, r->cs) + row * n;
    if (r->acted >= 0) m->acted = (float *)at(c, r->acted) + row * n;
    if (r->kept >= 0) m->kept = (float *)at(c, r->kept) + row * r->gates * n;
}

// x (steps, count, gates, hidden) -> hs, and cs of an LSTM (steps, count, hidden).
// space of an example: h, c and the h before, each of whole blocks.
static void some_examples(const recurrent_record *r, const call *c, int64_t first,
                          int64_t examples, float *space) {
    const int64_t n = r->hidden, padded = whole(n);
    const int64_t groups = (examples + EXAMPLES - 1) / EXAMPLES;
    const float *cell = at(c, r->c), *began = at(c, r->h), *weight = at(c, r->weight);
    moment m[TOGETHER];
    memset(space, 0, 12 * (size_t)(padded * examples));
    for (int64_t e = 0; e < examples; e++, space += 3 * padded) {
        m[e] = (moment){.r = r, .bias = at(c, r->bias), .before = space + 2 * padded,
                        .h = space, .c = space + padded};
        memcpy(m[e].h, began + (first + e) * n, 4 * (size_t)n);
        if (cell) memcpy(m[e].c, cell + (first + e) * n, 4 * (size_t)n);
    }
    for (int64_t i = 0; i < r->steps; i++) {
        for (int64_t e = 0; e < examples; e++) {
            at_step(m + e, c, first + e, r->reverse ? r->steps - 1 - i : i);
            memcpy(m[e].h + 2 * padded, m[e].h, 4 * (size_t)padded);
        }
        for (int64_t j = 0; j < n; j += LANES)
            for (int64_t g = 0; g < groups; g++) {
                const int64_t from = examples * g / groups, to = examples * (g + 1) / groups;
                units(to - from, m + from, weight, j);
            }
    }
}

void recurrent(const void *record, const call *c, int64_t part, int64_t parts) {
    const recurrent_record *r = record;
    float *space = (float *)at(c, r->space) + part * r->room;
    SHARE(r->count);
    for (int64_t low = first; low < behind; low += TOGETHER) {
        const int64_t left = behind - low;
        some_examples(r, c, low, left < TOGETHER ? left : TOGETHER, space);
    }
}
