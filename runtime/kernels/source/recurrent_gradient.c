// Gradients of LSTMs, GRUs and plain recurrent layers over a whole sequence, back through
// its steps, one direction.
//
// Some examples go through time together, so that each row of weights is read once for
// all of them. weight: (block of LANES hidden units, row, LANES), zeros behind. gate0 to gate3: positions of i, f, o and the new content among the gates;
// of a GRU those of z and r.
#include "call.h"
#include "functions.h"
#include "products.h"

enum {
    EXAMPLES = WIDTH == 16 ? 8 : 6,  // whose sums are in registers,
    BLOCKS = WIDTH == 16 ? 2 : 1,    // of so many blocks of units
    TOGETHER = 32                    // examples that go through time together, at most
};

typedef struct {
    const recurrent_gradient_record *r;
    const float *gates, *acted;   // of this step
    const float *state, *before;  // its state, of an LSTM its cell's, and the one before
    const float *by_h, *by_c;     // gradients of this step's results, or 0
    float *dz, *offsets, *dh, *dc;
} moment;

INLINE vec gate_of(const moment *m, int64_t gate, int64_t u, int64_t some) {
    return load_up_to(m->gates + gate * m->r->hidden + u, some);
}
INLINE void put(const moment *m, float *to, int64_t gate, int64_t u, vec v, int64_t some) {
    store_some(to + gate * m->r->hidden + u, v, some);
}

INLINE void lstm_part(const moment *m, int64_t u, int64_t some) {
    const recurrent_gradient_record *r = m->r;
    const vec i = gate_of(m, r->gate0, u, some), f = gate_of(m, r->gate1, u, some);
    const vec o = gate_of(m, r->gate2, u, some), z = gate_of(m, r->gate3, u, some);
    const vec bent = hyperbolic_tangent(load_up_to(m->state + u, some));
    vec dh = load_up_to(m->dh + u, some), dc = load_up_to(m->dc + u, some);
    if (m->by_h) dh += load_up_to(m->by_h + u, some);
    if (m->by_c) dc += load_up_to(m->by_c + u, some);
    dc += dh * o * (1.f - bent * bent);
    put(m, m->dz, r->gate0, u, dc * z * i * (1.f - i), some);
    put(m, m->dz, r->gate1, u, dc * load_up_to(m->before + u, some) * f * (1.f - f), some);
    put(m, m->dz, r->gate2, u, dh * bent * o * (1.f - o), some);
    put(m, m->dz, r->gate3, u, dc * i * (1.f - z * z), some);
    store_some(m->dc + u, dc * f, some);
    store_some(m->dh + u, (vec){0}, some);
}

// The candidate's product is behind the reset gate: `acted` has it.
INLINE void gru_part(const moment *m, int64_t u, int64_t some) {
    const recurrent_gradient_record *r = m->r;
    const vec z = gate_of(m, r->gate0, u, some), t = gate_of(m, r->gate1, u, some);
    const vec n = gate_of(m, 2, u, some), h = load_up_to(m->before + u, some);
    vec dh = load_up_to(m->dh + u, some);
    if (m->by_h) dh += load_up_to(m->by_h + u, some);
    const vec to_new = dh * (1.f - z) * (1.f - n * n);
    const vec to_update = dh * (h - n) * z * (1.f - z);
    const vec to_reset = to_new * load_up_to(m->acted + u, some) * t * (1.f - t);
    put(m, m->dz, r->gate0, u, to_update, some), put(m, m->offsets, r->gate0, u, to_update, some);
    put(m, m->dz, r->gate1, u, to_reset, some), put(m, m->offsets, r->gate1, u, to_reset, some);
    put(m, m->dz, 2, u, to_new, some), put(m, m->offsets, 2, u, to_new * t, some);
    store_some(m->dh + u, dh * z, some);
}

INLINE void plain_part(const moment *m, int64_t u, int64_t some) {
    const vec h = load_up_to(m->state + u, some);
    vec dh = load_up_to(m->dh + u, some);
    if (m->by_h) dh += load_up_to(m->by_h + u, some);
    const vec slope = m->r->mode == CELL_RELU ? choose(h > 0, all(1), all(0)) : 1.f - h * h;
    put(m, m->dz, 0, u, dh * slope, some);
    store_some(m->dh + u, (vec){0}, some);
}

INLINE void part_of(const moment *m, int64_t u, int64_t some) {
    if (m->r->mode == CELL_LSTM)
        lstm_part(m, u, some);
    else if (m->r->mode == CELL_GRU)
        gru_part(m, u, some);
    else
        plain_part(m, u, some);
}

static void one_step(const moment *m) {
    int64_t u = 0;
    for (; u + WIDTH <= m->r->hidden; u += WIDTH) part_of(m, u, WIDTH);
    if (u < m->r->hidden) part_of(m, u, m->r->hidden - u);
}

// dh of `blocks` blocks of units: plus dz times their weights, (block, row, LANES).
INLINE void block_of(const int examples, const int blocks, const float *dz, int64_t rows,
                     const float *w, float *dh, int64_t padded) {
    vec acc[EXAMPLES][BLOCKS * PARTS] = {{{0}}};
    for (int64_t row = 0; row < rows; row++, w += LANES) {
        vec ws[BLOCKS * PARTS];
        UNROLLED for (int v = 0; v < blocks * PARTS; v++)
            ws[v] = load(w + v / PARTS * rows * LANES + v % PARTS * WIDTH);
        UNROLLED for (int e = 0; e < examples; e++) {
            const vec s = all(dz[e * rows + row]);
            UNROLLED for (int v = 0; v < blocks * PARTS; v++) acc[e][v] += s * ws[v];
        }
    }
    UNROLLED for (int e = 0; e < examples; e++)
        UNROLLED for (int v = 0; v < blocks * PARTS; v++) {
            float *to = dh + e * padded + v * WIDTH;
            store(to, load(to) + acc[e][v]);
        }
}

INLINE void blocks_of(const int examples, int64_t blocks, const float *dz, int64_t rows,
                      const float *w, float *dh, int64_t padded) {
    if (blocks == BLOCKS)
        block_of(examples, BLOCKS, dz, rows, w, dh, padded);
    else
        block_of(examples, 1, dz, rows, w, dh, padded);
}

static void units_of(int64_t examples, int64_t blocks, const float *dz, int64_t rows,
                     const float *w, float *dh, int64_t padded) {
    switch (examples) {
    case 1: blocks_of(1, blocks, dz, rows, w, dh, padded); break;
    case 2: blocks_of(2, blocks, dz, rows, w, dh, padded); break;
    case 3: blocks_of(3, blocks, dz, rows, w, dh, padded); break;
    case 4: blocks_of(4, blocks, dz, rows, w, dh, padded); break;
    case 5: blocks_of(5, blocks, dz, rows, w, dh, padded); break;
#if WIDTH == 16
    case 6: blocks_of(6, blocks, dz, rows, w, dh, padded); break;
    case 7: blocks_of(7, blocks, dz, rows, w, dh, padded); break;
#endif
    default: blocks_of(EXAMPLES, blocks, dz, rows, w, dh, padded);
    }
}

// dh (examples, padded) += dz (examples, rows) times the weights. All examples take some
// blocks of these before any takes the next: from the second-level cache, but for one.
static void through_weights(int64_t examples, const float *dz, int64_t rows, const float *w,
                            float *dh, int64_t padded) {
    const int64_t groups = (examples + EXAMPLES - 1) / EXAMPLES;
    for (int64_t u = 0; u < padded; u += BLOCKS * LANES) {
        const int64_t left = (padded - u) / LANES, blocks = left < BLOCKS ? left : BLOCKS;
        for (int64_t g = 0; g < groups; g++) {
            const int64_t e = examples * g / groups, end = examples * (g + 1) / groups;
            units_of(end - e, blocks, dz + e * rows, rows, w + u * rows,
                     dh + e * padded + u, padded);
        }
    }
}

static void some_examples(const recurrent_gradient_record *r, const call *c, int64_t low,
                          int64_t examples, float *dh) {
    const int64_t n = r->hidden, padded = whole(n);
    const int64_t state = r->count * n, rows = r->gates_each * n;
    const float *by_h = at(c, r->by_h), *by_c = at(c, r->by_c), *states = at(c, r->states);
    const float *gates = at(c, r->gates), *acted = at(c, r->acted), *w = at(c, r->weight);
    float *dc = dh + r->room / 2, *all_dz = at(c, r->out), *offsets = at(c, r->offsets);
    memset(dh, 0, 4 * (size_t)r->room);
    for (int64_t k = r->steps - 1; k >= 0; k--) {
        const int64_t t = r->reverse ? r->steps - 1 - k : k;
        const float *before =
            k ? states + (r->reverse ? t + 1 : t - 1) * state : at(c, r->first);
        for (int64_t e = 0; e < examples; e++) {
            const int64_t at_example = (low + e) * n, row = t * state + at_example;
            const moment m = {
                .r = r,
                .gates = gates ? gates + r->gates_each * row : 0,
                .acted = acted ? acted + row : 0,
                .state = states + row,
                .before = before + at_example,
                .by_h = by_h ? by_h + row : 0,
                .by_c = by_c ? by_c + row : 0,
                .dz = all_dz + r->gates_each * row,
                .offsets = offsets ? offsets + r->gates_each * row : 0,
                .dh = dh + e * padded,
                .dc = dc + e * padded,
            };
            one_step(&m);
        }
        const float *dz = (offsets ? offsets : all_dz) + (t * r->count + low) * rows;
        through_weights(examples, dz, rows, w, dh, padded);
    }
    for (int64_t e = 0; e < examples; e++) {
        const int64_t to = (low + e) * n;
        if (r->dh >= 0) memcpy((float *)at(c, r->dh) + to, dh + e * padded, 4 * (size_t)n);
        if (r->dc >= 0) memcpy((float *)at(c, r->dc) + to, dc + e * padded, 4 * (size_t)n);
    }
}

// Of gates (steps, count, gates_each, hidden), states and the gradients of hs and cs
// (steps, count, hidden): out, of the gates' inputs; offsets, of a GRU's products with
// the state; and those of h and c, (count, hidden).
void recurrent_gradient(const void *record, const call *c, int64_t part, int64_t parts) {
    const recurrent_gradient_record *r = record;
    float *space = (float *)at(c, r->space) + part * r->room;
    SHARE(r->count);
    for (int64_t low = first; low < behind; low += TOGETHER) {
        const int64_t left = behind - low;
        some_examples(r, c, low, left < TOGETHER ? left : TOGETHER, space);
    }
}
