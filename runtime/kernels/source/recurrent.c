// Recurrent layers over a whole sequence: LSTM, GRU and plain ones, one direction.
//
// Weights are (block of LANES hidden units, hidden unit before, gate, LANES), with the
// gates in the order i f o c, or z r h: one pass over a block's weights gives all gates
// of its units. gate0 to gate3: their positions in the inputs' share.
#include "call.h"
#include "functions.h"
#include "products.h"

typedef struct {
    const recurrent_record *r;
    const float *weight, *bias;
    const float *x;      // this step's share of the inputs, (gates, hidden)
    const float *before; // h, with zeros up to whole blocks
    float *h, *c;        // this example's state
    float *hs, *cs;      // where this step's results go
    float *kept;         // where its gates go, or 0
    float *acted;        // where what a GRU's reset gate acts on goes, or 0
} moment;

// acc of `gates` gates of one block: h times weights (h of n units).
INLINE void gates_of(const int gates, const float *h, int64_t n, const float *w,
                     vec acc[4][PARTS]) {
    for (int64_t k = 0; k < n; k++, w += gates * LANES) {
        vec s = all(h[k]);
        UNROLLED for (int g = 0; g < gates; g++) UNROLLED for (int v = 0; v < PARTS; v++)
            acc[g][v] += s * load(w + g * LANES + v * WIDTH);
    }
}

INLINE vec some_of(const float *p, int64_t left) {
    return left >= WIDTH ? load(p) : load_some(p, left > 0 ? left : 0);
}
INLINE void put_some(float *p, vec v, int64_t left) {
    if (left > 0) store_some(p, v, left < WIDTH ? left : WIDTH);
}

// The inputs' share of gate g for the units from `start` on.
INLINE vec share(const moment *m, int64_t g, int64_t start) {
    const int64_t n = m->r->hidden;
    return some_of(m->x + g * n + start, n - start);
}
INLINE vec bias_of(const moment *m, int64_t g, int64_t start) {
    const int64_t n = m->r->hidden;
    return m->bias ? some_of(m->bias + g * n + start, n - start) : all(0);
}

static void lstm_block(const moment *m, int64_t j) {
    const recurrent_record *r = m->r;
    vec acc[4][PARTS] = {{{0}}};
    gates_of(4, m->before, r->hidden, m->weight + j * r->hidden * 4, acc);
    UNROLLED for (int v = 0; v < PARTS; v++) {
        const int64_t u = j + v * WIDTH, left = r->hidden - u;
        vec i = sigmoid(acc[0][v] + share(m, r->gate0, u));
        vec f = sigmoid(acc[1][v] + share(m, r->gate1, u));
        vec o = sigmoid(acc[2][v] + share(m, r->gate2, u));
        vec n = hyperbolic_tangent(acc[3][v] + share(m, r->gate3, u));
        vec c = f * load(m->c + u) + i * n;
        vec h = o * hyperbolic_tangent(c);
        store(m->c + u, c);
        store(m->h + u, h);
        put_some(m->hs + u, h, left);
        put_some(m->cs + u, c, left);
        if (!m->kept) continue;
        put_some(m->kept + r->gate0 * r->hidden + u, i, left);
        put_some(m->kept + r->gate1 * r->hidden + u, f, left);
        put_some(m->kept + r->gate2 * r->hidden + u, o, left);
        put_some(m->kept + r->gate3 * r->hidden + u, n, left);
    }
}

static void gru_block(const moment *m, int64_t j) {
    const recurrent_record *r = m->r;
    vec acc[4][PARTS] = {{{0}}};
    gates_of(3, m->before, r->hidden, m->weight + j * r->hidden * 3, acc);
    UNROLLED for (int v = 0; v < PARTS; v++) {
        const int64_t u = j + v * WIDTH;
        vec z = sigmoid(acc[0][v] + bias_of(m, r->gate0, u) + share(m, r->gate0, u));
        vec t = sigmoid(acc[1][v] + bias_of(m, r->gate1, u) + share(m, r->gate1, u));
        vec own = acc[2][v] + bias_of(m, 2, u);
        vec n = hyperbolic_tangent(t * own + share(m, 2, u));
        vec h = (load(m->before + u) - n) * z + n;
        const int64_t left = r->hidden - u;
        store(m->h + u, h);
        put_some(m->hs + u, h, left);
        if (m->acted) put_some(m->acted + u, own, left);
        if (!m->kept) continue;
        put_some(m->kept + r->gate0 * r->hidden + u, z, left);
        put_some(m->kept + r->gate1 * r->hidden + u, t, left);
        put_some(m->kept + 2 * r->hidden + u, n, left);
    }
}

static void plain_block(const moment *m, int64_t j) {
    const recurrent_record *r = m->r;
    vec acc[4][PARTS] = {{{0}}};
    gates_of(1, m->before, r->hidden, m->weight + j * r->hidden, acc);
    UNROLLED for (int v = 0; v < PARTS; v++) {
        const int64_t u = j + v * WIDTH;
        vec z = acc[0][v] + share(m, 0, u);
        vec h = r->mode == CELL_RELU ? at_least(all(0), z) : hyperbolic_tangent(z);
        store(m->h + u, h);
        put_some(m->hs + u, h, r->hidden - u);
    }
}

// x (steps, count, gates, hidden) -> hs, and cs of an LSTM (steps, count, hidden).
// space of a share: h, c and the h before, each of whole blocks.
static void one_example(const recurrent_record *r, const call *c, int64_t example,
                        float *space) {
    const int64_t n = r->hidden, padded = whole(n);
    const float *began = (const float *)at(c, r->h) + example * n;
    const float *cell = at(c, r->c);
    float *h = space, *before = space + 2 * padded;
    moment m = {r, at(c, r->weight), at(c, r->bias), 0, before, h, space + padded, 0, 0, 0, 0};
    memset(space, 0, 12 * (size_t)padded);
    memcpy(h, began, 4 * (size_t)n);
    if (cell) memcpy(m.c, cell + example * n, 4 * (size_t)n);
    for (int64_t i = 0; i < r->steps; i++) {
        const int64_t t = r->reverse ? r->steps - 1 - i : i, row = t * r->count + example;
        m.x = (const float *)at(c, r->x) + row * r->gates * n;
        m.hs = (float *)at(c, r->hs) + row * n;
        if (cell) m.cs = (float *)at(c, r->cs) + row * n;
        if (r->acted >= 0) m.acted = (float *)at(c, r->acted) + row * n;
        if (r->kept >= 0) m.kept = (float *)at(c, r->kept) + row * r->gates * n;
        memcpy(before, h, 4 * (size_t)padded);
        for (int64_t j = 0; j < n; j += LANES)
            if (r->mode == CELL_LSTM)
                lstm_block(&m, j);
            else if (r->mode == CELL_GRU)
                gru_block(&m, j);
            else
                plain_block(&m, j);
    }
}

void recurrent(const void *record, const call *c, int64_t part, int64_t parts) {
    const recurrent_record *r = record;
    float *space = (float *)at(c, r->space) + part * r->room;
    SHARE(r->count);
    for (int64_t u = first; u < behind; u++) one_example(r, c, u, space);
}
