// Element-wise programs: a chain of operators on tiles that stay in the first cache.
#include <math.h>

#include "activation.h"
#include "call.h"
#include "slopes.h"

enum { TILE = 512, REGISTERS = 16 };

typedef struct {
    int64_t array, mode, is_bool, outer[4], row, column;
} operand;

typedef struct {
    int32_t op, out, a, b, c, unused;
    double low, high;
} instruction;

// Elements `start` to `start + n` of a plane of rows of `width`, as the operand has them.
static const float *loaded(const operand *o, const char *base, int64_t start, int64_t n,
                           int64_t width, float *tile) {
    const float *x = (const float *)base;
    const uint8_t *bits = (const uint8_t *)base;
    if (o->mode == READ_DENSE && !o->is_bool) {
        if (n == TILE) return x + start;
        memcpy(tile, x + start, 4 * (size_t)n);
        return tile;
    }
    if (o->mode == READ_ONE) {
        const float value = o->is_bool ? bits[0] : x[0];
        for (int64_t i = 0; i < n; i++) tile[i] = value;
        return tile;
    }
    int64_t row = start / width, column = start % width;
    for (int64_t i = 0; i < n;) {
        const int64_t length = width - column < n - i ? width - column : n - i;
        const int64_t place = row * o->row + column * o->column;
        if (o->is_bool)
            for (int64_t j = 0; j < length; j++) tile[i + j] = bits[place + j * o->column];
        else if (o->column == 1)
            memcpy(tile + i, x + place, 4 * (size_t)length);
        else if (o->column == 0)
            for (int64_t j = 0; j < length; j++) tile[i + j] = x[place];
        else
            for (int64_t j = 0; j < length; j++) tile[i + j] = x[place + j * o->column];
        i += length;
        column = 0;
        row++;
    }
    return tile;
}

#define EACH(expression)                                     \
    for (int64_t i = 0; i < n; i += WIDTH) {                 \
        vec x = load(a + i), y = load(b + i), z = load(c + i); \
        (void)x, (void)y, (void)z;                           \
        store(out + i, (expression));                        \
    }                                                        \
    break;
#define TRUTH(condition) EACH(choose((ivec)(condition), all(1), all(0)))
#define SINGLY(expression)                                   \
    for (int64_t i = 0; i < n; i++) out[i] = (expression);   \
    break;

static void step(const instruction *s, const float *a, const float *b, const float *c,
                 float *out, int64_t n) {
    const float low = (float)s->low, high = (float)s->high;
    switch (s->op) {
    case DO_ADD: EACH(x + y)
    case DO_SUB: EACH(x - y)
    case DO_MUL: EACH(x * y)
    case DO_DIV: EACH(x / y)
    case DO_MAX: EACH(greater(x, y))
    case DO_MIN: EACH(less(x, y))
    case DO_NEG: EACH(-x)
    case DO_ABS: EACH((vec)((ivec)x & 0x7fffffff))
    case DO_EXP: EACH(exponential(x))
    case DO_SQRT: EACH(root(x))
    case DO_ERF: EACH(error_function(x))
    case DO_SQUARE: EACH(x * x)
    case DO_RECIPROCAL: EACH(1.f / x)
    case DO_LOG: SINGLY(logf(a[i]))
    case DO_LOG1P: SINGLY(log1pf(a[i]))
    case DO_EXPM1: SINGLY(expm1f(a[i]))
    case DO_FLOOR: SINGLY(floorf(a[i]))
    case DO_CEIL: SINGLY(ceilf(a[i]))
    case DO_RINT: SINGLY(rintf(a[i]))
    case DO_TRUNC: SINGLY(truncf(a[i]))
    case DO_SIN: SINGLY(sinf(a[i]))
    case DO_COS: SINGLY(cosf(a[i]))
    case DO_POW: SINGLY(powf(a[i], b[i]))
    case DO_GREATER: TRUTH(x > y)
    case DO_AT_LEAST: TRUTH(x >= y)
    case DO_LESS: TRUTH(x < y)
    case DO_AT_MOST: TRUTH(x <= y)
    case DO_EQUAL: TRUTH(x == y)
    case DO_UNEQUAL: TRUTH(x != y)
    case DO_AND: TRUTH((x != 0.f) & (y != 0.f))
    case DO_OR: TRUTH((x != 0.f) | (y != 0.f))
    case DO_NOT: TRUTH(x == 0.f)
    case DO_WHERE: EACH(choose((ivec)(x != 0.f), y, z))
    case DO_GELU_SLOPE: EACH(gelu_slope(x))
    case DO_GELU_TANH_SLOPE: EACH(gelu_tanh_slope(x))
    case DO_SWISH_SLOPE: EACH(swish_slope(x, low))
    case DO_HARD_SWISH_SLOPE: EACH(hard_swish_slope(x))
    case DO_SIGMOID_SLOPE: EACH(x * (1.f - x))
    case DO_TANH_SLOPE: EACH(1.f - x * x)
    case DO_LEAKY_SLOPE: EACH(choose((ivec)(x > 0.f), all(1), all(low)))
    case DO_ELU_SLOPE: EACH(elu_slope(x, low))
    case DO_RELU: EACH(activated(x, ACT_RELU, low, high))
    case DO_CLIP: EACH(activated(x, ACT_CLIP, low, high))
    case DO_RAMP: EACH(activated(x, ACT_RAMP, low, high))
    case DO_LEAKY: EACH(activated(x, ACT_LEAKY, low, high))
    case DO_HARD_SWISH: EACH(activated(x, ACT_HARD_SWISH, low, high))
    default:
        n = (n + LANES - 1) / LANES * LANES;
        memcpy(out, a, 4 * (size_t)n);
        activate(s->op - DO_ACTIVATION, out, 0, n / LANES, 1, 0, low, high);
    }
}

static void one_tile(const program_record *r, const call *c, const operand *operands,
                     char *const *bases, int64_t start, int64_t n) {
    static const float nothing[TILE];
    float tiles[REGISTERS][TILE];
    const float *registers[REGISTERS];
    const instruction *code = at(c, r->code);
    for (int i = 0; i < REGISTERS; i++) registers[i] = nothing;
    for (int64_t i = 0; i < r->operands; i++) {
        if (n < TILE) memset(tiles[i] + n, 0, 4 * (size_t)(TILE - n));
        registers[i] = loaded(operands + i, bases[i], start, n, r->width, tiles[i]);
    }
    // The last step of a whole tile writes where the result goes.
    float *to = (float *)bases[r->operands] + start;
    const int is_direct = !r->to_bool && n % LANES == 0;
    for (const instruction *s = code; s < code + r->steps; s++) {
        float *out = is_direct && s->out == r->result ? to : tiles[s->out];
        step(s, registers[s->a], registers[s->b], registers[s->c], out, n);
        registers[s->out] = out;
    }
    const float *result = registers[r->result];
    if (!r->to_bool) {
        if (result != to) memcpy(to, result, 4 * (size_t)n);
        return;
    }
    uint8_t *bits = (uint8_t *)bases[r->operands] + start;
    for (int64_t i = 0; i < n; i++) bits[i] = result[i] != 0;
}

// A unit is a tile of a plane; planes are numbered by the outer axes.
void program(const void *record, const call *c, int64_t part, int64_t parts) {
    const program_record *r = record;
    const operand *operands = at(c, r->table);
    const int64_t sizes[4] = {r->size0, r->size1, r->size2, r->size3};
    const int64_t plane = r->rows * r->width, tiles = (plane + TILE - 1) / TILE;
    const int64_t planes = sizes[0] * sizes[1] * sizes[2] * sizes[3];
    char *bases[REGISTERS + 1];
    SHARE(planes * tiles);
    for (int64_t u = first; u < behind; u++) {
        const int64_t start = u % tiles * TILE;
        int64_t rest = u / tiles;
        if (u == first || start == 0) {
            int64_t index[4];
            for (int d = 3; d >= 0; d--) index[d] = rest % sizes[d], rest /= sizes[d];
            for (int64_t i = 0; i < r->operands; i++) {
                int64_t place = 0;
                for (int d = 0; d < 4; d++) place += index[d] * operands[i].outer[d];
                bases[i] = (char *)at(c, operands[i].array)
                           + place * (operands[i].is_bool ? 1 : 4);
            }
            bases[r->operands] = (char *)at(c, r->out)
                                 + u / tiles * plane * (r->to_bool ? 1 : 4);
        }
        one_tile(r, c, operands, bases, start, plane - start < TILE ? plane - start : TILE);
    }
}
