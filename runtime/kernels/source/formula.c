// Steps of optimizers whose rule is a formula: its program on tiles, for all its arrays.
#include "optimizer.h"
#include "program.h"

enum { TILE = FORMULA_TILE };

// A record's registers: weight, grad, new weight, state; what steps make; constants.
enum { WEIGHT, GRAD, NEW, STATE };

typedef struct {
    float tiles[FORMULA_REGISTERS][TILE], constants[FORMULA_CONSTANTS][TILE];
    float *at[FORMULA_REGISTERS + FORMULA_CONSTANTS];
} workplace;

static void one_tile(const formula_record *r, const call *c, const clipping *by,
                     workplace *w, int64_t start, int64_t n) {
    const float *grad = (const float *)at(c, r->grad) + start;
    const int64_t *states = &r->s0;
    memcpy(w->tiles[WEIGHT], (const float *)at(c, r->weight) + start, 4 * (size_t)n);
    for (int64_t i = 0; i < n; i += WIDTH) {
        const int64_t some = n - i < WIDTH ? n - i : WIDTH;
        const vec g = within_limits(by, load_up_to(grad + i, some));
        store_up_to(w->tiles[GRAD] + i, g, some);
    }
    for (int64_t s = 0; s < r->slots; s++) {  // whole tiles are changed where they are
        float *state = (float *)at(c, states[s]) + start, *tile = w->tiles[STATE + s];
        w->at[STATE + s] = n == TILE ? state : tile;
        if (n < TILE) memcpy(tile, state, 4 * (size_t)n);
    }
    const instruction *code = at(c, r->code);
    static const int64_t each[3] = {-1, -1, -1};
    for (const instruction *s = code; s < code + r->steps; s++)
        step(s, w->at[s->a], w->at[s->b], w->at[s->c], each, w->at[s->out], n);
    memcpy((float *)at(c, r->out) + start, w->tiles[NEW], 4 * (size_t)n);
    for (int64_t s = 0; s < r->slots; s++)
        if (n < TILE)
            memcpy((float *)at(c, states[s]) + start, w->tiles[STATE + s], 4 * (size_t)n);
}

// out <- the new weights, the state in place. The program may write to all registers
// but constants; what it leaves in NEW is the result.
void formula(const void *record, const call *c, int64_t part, int64_t parts) {
    const formula_record *r = record;
    const clipping by = clipping_of(at(c, r->factor), r->bound, r->maximize);
    workplace w;
    for (int i = 0; i < FORMULA_REGISTERS; i++) {
        w.at[i] = w.tiles[i];
        memset(w.tiles[i], 0, sizeof w.tiles[i]);  // behind the elements of a last tile
    }
    for (int64_t k = 0; k < r->constants; k++) {
        w.at[FORMULA_REGISTERS + k] = w.constants[k];
        for (int i = 0; i < TILE; i++) w.constants[k][i] = (float)(&r->k0)[k];
    }
    SHARE((r->count + TILE - 1) / TILE);
    for (int64_t t = first; t < behind; t++) {
        const int64_t left = r->count - t * TILE;
        one_tile(r, c, &by, &w, t * TILE, left < TILE ? left : TILE);
    }
}
