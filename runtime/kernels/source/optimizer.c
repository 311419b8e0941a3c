// Steps of optimizers: new weights beside the old ones, the state in place, in one pass.
#include "optimizer.h"

// velocity <- momentum * velocity + share * grad;  out <- weight - rate * velocity
void sgd(const void *record, const call *c, int64_t part, int64_t parts) {
    const sgd_record *r = record;
    const float *weight = at(c, r->weight), *grad = at(c, r->grad);
    float *velocity = at(c, r->velocity), *out = at(c, r->out);
    const clipping by = clipping_of(at(c, r->factor), r->bound, r->maximize);
    const float rate = (float)r->rate, momentum = (float)r->momentum, share = (float)r->share;
    const float decay = (float)r->decay;
    SHARE(r->count);
    for (int64_t i = first; i < behind; i += WIDTH) {
        const int64_t n = behind - i < WIDTH ? behind - i : WIDTH;
        const vec w = load_up_to(weight + i, n);
        vec g = within_limits(&by, load_up_to(grad + i, n));
        if (r->has_decay) g += w * decay;
        if (velocity) {
            const vec v = load_up_to(velocity + i, n) * momentum + g * share;
            store_up_to(velocity + i, v, n);
            g = r->nesterov ? g + v * momentum : v;
        }
        store_up_to(out + i, w - g * rate, n);
    }
}

typedef struct {
    const float *weight, *grad;
    float *means, *squares, *largest, *out;
    clipping by;
    float rate, keep, take, keep_square, take_square, unbias, eps, decay;
} adam_step;

// n elements from i on: a vector, or what is left of one.
INLINE void adam_at(const int decays, const adam_step *a, int64_t i, int64_t n) {
    vec w = load_up_to(a->weight + i, n);
    vec g = within_limits(&a->by, load_up_to(a->grad + i, n));
    if (decays == DECAY_GRAD) g += w * a->decay;
    const vec m = load_up_to(a->means + i, n) * a->keep + g * a->take;
    vec s = load_up_to(a->squares + i, n) * a->keep_square + g * g * a->take_square;
    store_up_to(a->means + i, m, n);
    store_up_to(a->squares + i, s, n);
    if (a->largest) {
        s = greater(load_up_to(a->largest + i, n), s);
        store_up_to(a->largest + i, s, n);
    }
    const vec change = m / (root(s) * a->unbias + a->eps) * a->rate;
    if (decays == DECAY_WEIGHT) w *= a->decay;
    if (decays == DECAY_CAUTIOUS) w = choose(m * w >= 0.f, w * a->decay, w);
    store_up_to(a->out + i, w - change, n);
}

INLINE void adam_over(const int decays, const adam_step *given, int64_t first,
                      int64_t behind) {
    const adam_step a = *given;  // stores of floats do not change it
    int64_t i = first;
    for (; i + WIDTH <= behind; i += WIDTH) adam_at(decays, &a, i, WIDTH);
    if (i < behind) adam_at(decays, &a, i, behind - i);
}

// mean, square: running averages of grad and its square. out <- weight, decayed, less
// rate * mean / (sqrt(square) * unbias + eps); with `largest`, its square counts.
void adam(const void *record, const call *c, int64_t part, int64_t parts) {
    const adam_record *r = record;
    const adam_step a = {
        .weight = at(c, r->weight), .grad = at(c, r->grad), .means = at(c, r->mean),
        .squares = at(c, r->square), .largest = at(c, r->largest), .out = at(c, r->out),
        .by = clipping_of(at(c, r->factor), r->bound, r->maximize),
        .rate = (float)r->rate,
        .keep = (float)r->beta1, .take = (float)(1 - r->beta1),
        .keep_square = (float)r->beta2, .take_square = (float)(1 - r->beta2),
        .unbias = (float)r->unbias, .eps = (float)r->eps, .decay = (float)r->decay,
    };
    SHARE(r->count);
    switch (r->decays) {
    case DECAY_GRAD: adam_over(DECAY_GRAD, &a, first, behind); break;
    case DECAY_WEIGHT: adam_over(DECAY_WEIGHT, &a, first, behind); break;
    case DECAY_CAUTIOUS: adam_over(DECAY_CAUTIOUS, &a, first, behind); break;
    default: adam_over(DECAY_NONE, &a, first, behind);
    }
}
