// Element-wise programs: a chain of operators on tiles that stay in the first cache.
#include <math.h>

#include "activation.h"
#include "call.h"
#include "slopes.h"

enum { TILE = PROGRAM_TILE, REGISTERS = 16 };

typedef struct {
    int64_t array, mode, is_bool, outer[4], row, column;
} operand;

typedef struct {
    int32_t op, out, a, b, c, unused;
    double low, high;
} instruction;

// A tile of an operand that has one number for all of a plane.
static void fill(const operand *o, const char *base, int64_t n, float *tile) {
    const float value = o->is_bool ? *(const uint8_t *)base : *(const float *)base;
    for (int64_t i = 0; i < n; i++) tile[i] = value;
}

// Elements `start` to `start + n` of a plane of rows of `width`, as the operand has them.
// The tile of one number is filled already.
static const float *loaded(const operand *o, const char *base, int64_t start, int64_t n,
                           int64_t width, float *tile) {
    const float *x = (const float *)base;
    const uint8_t *bits = (const uint8_t *)base;
    if (o->mode == READ_DENSE && !o->is_bool) {
        if (n % LANES == 0) return x + start;
        memcpy(tile, x + start, 4 * (size_t)n);
        return tile;
    }
    if (o->mode == READ_ONE) return tile;
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
#define EACH_ACTIVATED(act)                                                        \
    for (int64_t i = 0; i < n;) {                                                  \
        if (i + ABREAST * WIDTH <= n) {                                            \
            vec x[ABREAST];                                                        \
            UNROLLED for (int j = 0; j < ABREAST; j++) x[j] = load(a + i + j * WIDTH); \
            activate_together(ABREAST, x, act, low, high);                         \
            UNROLLED for (int j = 0; j < ABREAST; j++) store(out + i + j * WIDTH, x[j]); \
            i += ABREAST * WIDTH;                                                  \
        } else {                                                                   \
            store(out + i, activated(load(a + i), act, low, high));                \
            i += WIDTH;                                                            \
        }                                                                          \
    }                                                                              \
    break;
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
    case DO_RELU: EACH_ACTIVATED(ACT_RELU)
    case DO_CLIP: EACH_ACTIVATED(ACT_CLIP)
    case DO_GELU: EACH_ACTIVATED(ACT_GELU)
    case DO_GELU_TANH: EACH_ACTIVATED(ACT_GELU_TANH)
    case DO_SIGMOID: EACH_ACTIVATED(ACT_SIGMOID)
    case DO_TANH: EACH_ACTIVATED(ACT_TANH)
    case DO_SWISH: EACH_ACTIVATED(ACT_SWISH)
    case DO_HARD_SWISH: EACH_ACTIVATED(ACT_HARD_SWISH)
    case DO_RAMP: EACH_ACTIVATED(ACT_RAMP)
    case DO_LEAKY: EACH_ACTIVATED(ACT_LEAKY)
    case DO_ELU: EACH_ACTIVATED(ACT_ELU)
    case DO_SOFTPLUS: EACH_ACTIVATED(ACT_SOFTPLUS)
    default: memcpy(out, a, 4 * (size_t)n);
    }
}

static float sum_of_tile(const float *x, int64_t n) {
    vec s[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 * WIDTH <= n; i += 4 * WIDTH)
        UNROLLED for (int j = 0; j < 4; j++) s[j] += load(x + i + j * WIDTH);
    for (; i + WIDTH <= n; i += WIDTH) s[0] += load(x + i);
    float sum = sum_of((s[0] + s[1]) + (s[2] + s[3]));
    for (; i < n; i++) sum += x[i];
    return sum;
}

// `unit`: the tile's number among all.
static void one_tile(const program_record *r, const call *c, const operand *operands,
                     char *const *bases, float (*tiles)[TILE], int64_t unit,
                     int64_t start, int64_t n) {
    static const float nothing[TILE];
    const float *registers[REGISTERS];
    const instruction *code = at(c, r->code);
    for (int i = 0; i < REGISTERS; i++) registers[i] = nothing;
    for (int64_t i = 0; i < r->operands; i++) {
        const int64_t rest = -n & (LANES - 1);
        if (rest && operands[i].mode != READ_ONE)
            memset(tiles[i] + n, 0, 4 * (size_t)rest);
        registers[i] = loaded(operands + i, bases[i], start, n, r->width, tiles[i]);
    }
    // The last step of a whole tile writes where the result goes.
    float *to = (float *)bases[r->operands] + start;
    const int is_direct = r->to == RESULT_VALUES && n % LANES == 0;
    for (const instruction *s = code; s < code + r->steps; s++) {
        float *out = is_direct && s->out == r->result ? to : tiles[s->out];
        step(s, registers[s->a], registers[s->b], registers[s->c], out, n);
        registers[s->out] = out;
    }
    const float *result = registers[r->result];
    if (r->to == RESULT_VALUES) {
        if (result != to) memcpy(to, result, 4 * (size_t)n);
    } else if (r->to == RESULT_SUMS) {
        ((float *)at(c, r->out))[unit] = sum_of_tile(result, n);
    } else {
        uint8_t *bits = (uint8_t *)bases[r->operands] + start;
        for (int64_t i = 0; i < n; i++) bits[i] = result[i] != 0;
    }
}

// A unit is a tile of a plane; planes are numbered by the outer axes.
void program(const void *record, const call *c, int64_t part, int64_t parts) {
    const program_record *r = record;
    const operand *operands = at(c, r->table);
    const int64_t sizes[4] = {r->size0, r->size1, r->size2, r->size3};
    const int64_t plane = r->rows * r->width, tiles = (plane + TILE - 1) / TILE;
    const int64_t planes = sizes[0] * sizes[1] * sizes[2] * sizes[3];
    const int64_t filled = plane < TILE ? (plane + LANES - 1) / LANES * LANES : TILE;
    char *bases[REGISTERS + 1];
    float memory[REGISTERS][TILE];
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
                if (operands[i].mode == READ_ONE)
                    fill(operands + i, bases[i], filled, memory[i]);
            }
            bases[r->operands] = (char *)at(c, r->out)
                                 + u / tiles * plane * (r->to == RESULT_BOOLS ? 1 : 4);
        }
        const int64_t n = plane - start < TILE ? plane - start : TILE;
        one_tile(r, c, operands, bases, memory, u, start, n);
    }
}
