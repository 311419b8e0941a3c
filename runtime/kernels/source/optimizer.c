// Steps of optimizers: new weights beside the old ones, the state in place, in one pass.
#include "call.h"

INLINE vec some_of(const float *p, int64_t n) {
    return n == WIDTH ? load(p) : load_some(p, n);
}
INLINE void put(float *p, vec v, int64_t n) {
    if (n == WIDTH)
        store(p, v);
    else
        store_some(p, v, n);
}

// velocity <- momentum * velocity + share * grad;  out <- weight - rate * velocity
void sgd(const void *record, const call *c, int64_t part, int64_t parts) {
    const sgd_record *r = record;
    const float *weight = at(c, r->weight), *grad = at(c, r->grad);
    float *velocity = at(c, r->velocity), *out = at(c, r->out);
    const float sign = r->maximize ? -1 : 1, rate = (float)r->rate;
    const float momentum = (float)r->momentum, share = (float)r->share;
    const float decay = (float)r->decay;
    SHARE(r->count);
    for (int64_t i = first; i < behind; i += WIDTH) {
        const int64_t n = behind - i < WIDTH ? behind - i : WIDTH;
        const vec w = some_of(weight + i, n);
        vec g = some_of(grad + i, n) * sign;
        if (r->has_decay) g += w * decay;
        if (velocity) {
            const vec v = some_of(velocity + i, n) * momentum + g * share;
            put(velocity + i, v, n);
            g = r->nesterov ? g + v * momentum : v;
        }
        put(out + i, w - g * rate, n);
    }
}

// mean, square: running averages of grad and its square. out <- weight, decayed, less
// rate * mean / (sqrt(square) * unbias + eps); with `largest`, its square counts.
void adam(const void *record, const call *c, int64_t part, int64_t parts) {
    const adam_record *r = record;
    const float *weight = at(c, r->weight), *grad = at(c, r->grad);
    float *means = at(c, r->mean), *squares = at(c, r->square);
    float *largest = at(c, r->largest), *out = at(c, r->out);
    const float sign = r->maximize ? -1 : 1, rate = (float)r->rate;
    const float keep = (float)r->beta1, take = (float)(1 - r->beta1);
    const float keep_square = (float)r->beta2, take_square = (float)(1 - r->beta2);
    const float unbias = (float)r->unbias, eps = (float)r->eps, decay = (float)r->decay;
    SHARE(r->count);
    for (int64_t i = first; i < behind; i += WIDTH) {
        const int64_t n = behind - i < WIDTH ? behind - i : WIDTH;
        vec w = some_of(weight + i, n);
        vec g = some_of(grad + i, n) * sign;
        if (r->decays == DECAY_GRAD) g += w * decay;
        const vec m = some_of(means + i, n) * keep + g * take;
        vec s = some_of(squares + i, n) * keep_square + g * g * take_square;
        put(means + i, m, n);
        put(squares + i, s, n);
        if (largest) {
            s = greater(some_of(largest + i, n), s);
            put(largest + i, s, n);
        }
        const vec change = m / (root(s) * unbias + eps) * rate;
        if (r->decays == DECAY_WEIGHT) w *= decay;
        if (r->decays == DECAY_CAUTIOUS) w = choose(m * w >= 0.f, w * decay, w);
        put(out + i, w - change, n);
    }
}
