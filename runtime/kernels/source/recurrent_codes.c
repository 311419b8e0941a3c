// LSTMs over a whole sequence whose states are rounded to bytes before each product.
//
// A step rounds h over the range of all examples, as DynamicQuantizeLinear does, sums
// products of codes exactly, and scales the sums. Weights are (block of LANES hidden
// units, eight hidden units before, two of these fours, gate, LANES, four), with the
// gates in the order i f o c; scales, zero points and sums of weights (block, gate,
// LANES). gate0 to gate3: the gates' positions in the inputs' share.
#include "call.h"
#include "codes.h"
#include "dot.h"
#include "functions.h"
#include "ranges.h"
#include "units.h"

// Examples that share a pass over the weights, and sums of a gate that do not wait for
// each other, where few examples leave registers for them.
#if WIDTH == 16
enum { TOGETHER = 4, CHAINS = 2 };
#else
enum { TOGETHER = 1, CHAINS = 1 };
#endif
enum {
    GATES = 4,
    FOURS = 2,
    AHEAD = 4096  // of weights: bytes that are asked for before they are used
};

// What all blocks of a step read. h, c, bytes: of the first of some examples.
typedef struct {
    const recurrent_codes_record *r;
    const call *c;
    const uint8_t *bytes;
    const float *x;  // this step's share of the inputs, (examples, gates, hidden)
    float *h, *cell, *hs, *last;
    int64_t padded;  // hidden units in whole blocks
    float scale;     // of the codes
    int32_t middle;  // the byte that represents 0
    int is_last;
} moment;

// The sum of an example's bytes, less that of the bytes that represent 0.
static int32_t total_of(const uint8_t *p, int64_t n, int32_t middle) {
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += p[i] - middle;
    return sum;
}

INLINE ivec four_of(const uint8_t *p) {
    int32_t n;
    memcpy(&n, p, 4);
    return n - (ivec){0};
}

// The sums of R examples' codes times a block's weights.
INLINE void sums_of(const int R, const int chains, const moment *m, const int8_t *w,
                    ivec acc[TOGETHER][CHAINS][GATES][PARTS]) {
    UNROLLED for (int e = 0; e < R; e++) UNROLLED for (int k = 0; k < chains; k++)
        UNROLLED for (int g = 0; g < GATES; g++) UNROLLED for (int v = 0; v < PARTS; v++)
            acc[e][k][g][v] = (ivec){0};
    for (int64_t i = 0; i < m->padded; i += 4 * FOURS)
        UNROLLED for (int k = 0; k < FOURS; k++, w += 4 * GATES * LANES) {
            ivec x[TOGETHER];
            UNROLLED for (int e = 0; e < R; e++)
                x[e] = four_of(m->bytes + e * m->padded + i + 4 * k);
            UNROLLED for (int g = 0; g < GATES; g++)
                __builtin_prefetch(w + AHEAD + 4 * LANES * g, 0, 3);
            UNROLLED for (int g = 0; g < GATES; g++)
                UNROLLED for (int v = 0; v < PARTS; v++) {
                    ivec ws;
                    memcpy(&ws, w + 4 * (g * LANES + v * WIDTH), sizeof ws);
                    UNROLLED for (int e = 0; e < R; e++) {
                        ivec *to = &acc[e][k % chains][g][v];
                        *to = dot(*to, x[e], ws);
                    }
                }
        }
}

// A gate of WIDTH units before its function: its scaled sum and the inputs' share.
INLINE vec gate_of(const moment *m, int64_t example, int64_t g, int64_t unit, ivec sum,
                   int32_t above, int64_t place) {
    const recurrent_codes_record *r = m->r;
    const int64_t at_block = (unit / LANES * GATES + g) * LANES + unit % LANES;
    ivec totals, zeros;
    memcpy(&totals, (const int32_t *)at(m->c, r->total) + at_block, sizeof totals);
    memcpy(&zeros, (const int32_t *)at(m->c, r->zero) + at_block, sizeof zeros);
    const ivec exact = sum - m->middle * totals - above * zeros;
    const vec step = m->scale * load((const float *)at(m->c, r->scale) + at_block);
    const float *x = m->x + (example * GATES + place) * r->hidden + unit;
    return rounded_product(__builtin_convertvector(exact, vec), step)
           + units_at(x, r->hidden - unit);
}

INLINE void some_units(const int R, const moment *m, const int32_t *above, int64_t j) {
    const int chains = R > 2 ? 1 : CHAINS;
    const recurrent_codes_record *r = m->r;
    ivec acc[TOGETHER][CHAINS][GATES][PARTS];
    sums_of(R, chains, m, (const int8_t *)at(m->c, r->weight) + j * m->padded * GATES, acc);
    UNROLLED for (int e = 0; e < R; e++) UNROLLED for (int v = 0; v < PARTS; v++) {
        const int64_t u = j + v * WIDTH, left = r->hidden - u;
        const int64_t places[GATES] = {r->gate0, r->gate1, r->gate2, r->gate3};
        vec z[GATES];
        UNROLLED for (int g = 0; g < GATES; g++) {
            ivec sum = acc[e][0][g][v];
            UNROLLED for (int k = 1; k < chains; k++) sum += acc[e][k][g][v];
            z[g] = gate_of(m, e, g, u, sum, above[e], places[g]);
        }
        const vec c = sigmoid(z[1]) * load(m->cell + e * m->padded + u)
                      + sigmoid(z[0]) * hyperbolic_tangent(z[3]);
        const vec h = sigmoid(z[2]) * hyperbolic_tangent(c);
        store(m->cell + e * m->padded + u, c);
        put_units(m->h + e * m->padded + u, h, left);
        put_units(m->hs + e * r->hidden + u, h, left);
        if (m->is_last) put_units(m->last + e * r->hidden + u, c, left);
    }
}

static void units(int64_t examples, const moment *m, const int32_t *above, int64_t j) {
    switch (examples) {
    case 1: some_units(1, m, above, j); break;
#if WIDTH == 16
    case 2: some_units(2, m, above, j); break;
    case 3: some_units(3, m, above, j); break;
    default: some_units(4, m, above, j);
#endif
    }
}

// Codes of all states, and the scale and the byte of 0 that cover them.
static void round_states(moment *m, uint8_t *codes) {
    const recurrent_codes_record *r = m->r;
    const int64_t n = r->count * m->padded;
    vec low = {0}, high = {0}, none = {0}, wrong = {0};
    widen_range(m->h, n, &low, &high, &none);
    const float least = -greatest_of(-low), most = greatest_of(high);
    m->scale = usable_scale((most - least) / (float)(r->high - r->low));
    const int8_t zero = zero_of(least, m->scale, r->low, r->high);
    m->middle = SHIFT + zero;
    const scheme s = scheme_from(m->scale, zero, r->low, r->high);
    for (int64_t i = 0; i < n; i += WIDTH) {
        const bytes b = codes_of(load(m->h + i), &s, &wrong);
        memcpy(codes + i, &b, WIDTH);
    }
    if (sum_of(none) != 0) *(int64_t *)at(m->c, r->fault) = 1;
}

// x (steps, count, gates, hidden) -> hs (steps, count, hidden), and the last c.
// space: h and c of all examples, each of whole blocks, and codes of h.
void recurrent_codes(const void *record, const call *c, int64_t part, int64_t parts) {
    const recurrent_codes_record *r = record;
    const int64_t n = r->hidden, padded = (n + LANES - 1) / LANES * LANES;
    float *h = at(c, r->space), *cell = h + r->count * padded;
    uint8_t *codes = (uint8_t *)(cell + r->count * padded);
    const float *began = at(c, r->h), *cells = at(c, r->c);
    moment m = {.r = r, .c = c, .h = h, .padded = padded};
    memset(h, 0, 8 * (size_t)(r->count * padded));
    for (int64_t e = 0; e < r->count; e++) {
        memcpy(h + e * padded, began + e * n, 4 * (size_t)n);
        memcpy(cell + e * padded, cells + e * n, 4 * (size_t)n);
    }
    const int32_t *zeros = at(c, r->zero);
    int is_shifted = 0;
    for (int64_t i = 0; i < GATES * padded; i++) is_shifted |= zeros[i];
    for (int64_t i = 0; i < r->steps; i++) {
        const int64_t t = r->reverse ? r->steps - 1 - i : i;
        m.h = h;
        m.is_last = i == r->steps - 1;
        round_states(&m, codes);
        for (int64_t e = 0; e < r->count; e += TOGETHER) {
            const int64_t left = r->count - e, some = left < TOGETHER ? left : TOGETHER;
            int32_t above[TOGETHER] = {0};
            m.bytes = codes + e * padded;
            m.h = h + e * padded;
            m.cell = cell + e * padded;
            m.x = (const float *)at(c, r->x) + (t * r->count + e) * GATES * n;
            m.hs = (float *)at(c, r->hs) + (t * r->count + e) * n;
            m.last = (float *)at(c, r->last) + e * n;
            for (int64_t k = 0; k < some && is_shifted; k++)
                above[k] = total_of(m.bytes + k * padded, padded, m.middle);
            for (int64_t j = 0; j < n; j += LANES) units(some, &m, above, j);
        }
    }
}
