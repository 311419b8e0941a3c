// The gradient of an LSTM over a whole sequence, back through its steps, one direction.
//
// Some examples go through time together, so that each row of weights is read once for
// all of them. gate0 to gate3: positions of i, f, o and the new content among the gates.
#include "call.h"
#include "functions.h"

enum { EXAMPLES = WIDTH == 16 ? 8 : 4 };

typedef struct {
    const float *gates, *c, *before;  // of this step, and the cell's content before it
    const float *by_h, *by_c;         // gradients of this step's results, or 0
    float *dz, *dh, *dc;
} moment;

static void one_step(const recurrent_gradient_record *r, const moment *m) {
    const int64_t n = r->hidden;
    for (int64_t u = 0; u < n; u += WIDTH) {
        const vec i = load(m->gates + r->gate0 * n + u), f = load(m->gates + r->gate1 * n + u);
        const vec o = load(m->gates + r->gate2 * n + u), z = load(m->gates + r->gate3 * n + u);
        const vec bent = hyperbolic_tangent(load(m->c + u));
        vec dh = load(m->dh + u), dc = load(m->dc + u);
        if (m->by_h) dh += load(m->by_h + u);
        if (m->by_c) dc += load(m->by_c + u);
        dc += dh * o * (1.f - bent * bent);
        store(m->dz + r->gate0 * n + u, dc * z * i * (1.f - i));
        store(m->dz + r->gate1 * n + u, dc * load(m->before + u) * f * (1.f - f));
        store(m->dz + r->gate2 * n + u, dh * bent * o * (1.f - o));
        store(m->dz + r->gate3 * n + u, dc * i * (1.f - z * z));
        store(m->dc + u, dc * f);
    }
}

// dh (examples, hidden) = dz (examples, 4 hidden) times the weights.
INLINE void through_weights(const int examples, const float *dz, int64_t n, const float *w,
                            float *dh) {
    for (int64_t u = 0; u < n; u += LANES) {
        vec acc[EXAMPLES][PARTS] = {{{0}}};
        for (int64_t row = 0; row < 4 * n; row++) {
            vec ws[PARTS];
            UNROLLED for (int v = 0; v < PARTS; v++) ws[v] = load(w + row * n + u + v * WIDTH);
            UNROLLED for (int e = 0; e < examples; e++) {
                const vec s = all(dz[e * 4 * n + row]);
                UNROLLED for (int v = 0; v < PARTS; v++) acc[e][v] += s * ws[v];
            }
        }
        UNROLLED for (int e = 0; e < examples; e++) UNROLLED for (int v = 0; v < PARTS; v++)
            store(dh + e * n + u + v * WIDTH, acc[e][v]);
    }
}

static void some_examples(const recurrent_gradient_record *r, const call *c, int64_t low,
                          int64_t examples, float *dh) {
    const int64_t n = r->hidden, state = r->count * n;
    const float *by_h = at(c, r->by_h), *by_c = at(c, r->by_c), *cs = at(c, r->cs);
    float *dc = dh + EXAMPLES * n, *all_dz = at(c, r->out);
    memset(dh, 0, 8 * (size_t)(EXAMPLES * n));
    for (int64_t k = r->steps - 1; k >= 0; k--) {
        const int64_t t = r->reverse ? r->steps - 1 - k : k;
        const float *before = k ? cs + (r->reverse ? t + 1 : t - 1) * state : at(c, r->c);
        for (int64_t e = 0; e < examples; e++) {
            const int64_t at_example = (low + e) * n, row = t * state + at_example;
            const moment m = {
                .gates = (const float *)at(c, r->gates) + 4 * row,
                .c = cs + row,
                .before = before + at_example,
                .by_h = by_h ? by_h + row : 0,
                .by_c = by_c ? by_c + row : 0,
                .dz = all_dz + 4 * row,
                .dh = dh + e * n,
                .dc = dc + e * n,
            };
            one_step(r, &m);
        }
        const float *dz = all_dz + 4 * (t * state + low * n), *w = at(c, r->weight);
        if (examples == EXAMPLES)
            through_weights(EXAMPLES, dz, n, w, dh);
        else
            for (int64_t e = 0; e < examples; e++)
                through_weights(1, dz + e * 4 * n, n, w, dh + e * n);
    }
    const size_t size = 4 * (size_t)(examples * n);
    if (r->dh >= 0) memcpy((float *)at(c, r->dh) + low * n, dh, size);
    if (r->dc >= 0) memcpy((float *)at(c, r->dc) + low * n, dc, size);
}

// Of gates (steps, count, 4, hidden), cs and the gradients of hs and cs (steps, count,
// hidden): out, of the gates' inputs, and those of h and c, (count, hidden).
void recurrent_gradient(const void *record, const call *c, int64_t part, int64_t parts) {
    const recurrent_gradient_record *r = record;
    float *space = (float *)at(c, r->space) + part * r->room;
    SHARE((r->count + EXAMPLES - 1) / EXAMPLES);
    for (int64_t u = first; u < behind; u++) {
        const int64_t left = r->count - u * EXAMPLES;
        some_examples(r, c, u * EXAMPLES, left < EXAMPLES ? left : EXAMPLES, space);
    }
}
