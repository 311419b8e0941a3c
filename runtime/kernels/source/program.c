// Element-wise programs: a chain of operators on tiles that stay in the first cache.
#include "program.h"

enum { TILE = PROGRAM_TILE, REGISTERS = 16 };

typedef struct {
    int64_t array, mode, is_bool, outer[4], row, column;
} operand;

// A tile of an operand that has one number for all of a plane.
static void fill(const operand *o, const char *base, int64_t n, float *tile) {
    const float value = o->is_bool ? *(const uint8_t *)base : *(const float *)base;
    for (int64_t i = 0; i < n; i++) tile[i] = value;
}

// n bytes, 0 or 1, as numbers.
INLINE void truths(const uint8_t *bits, int64_t n, float *tile) {
    for (int64_t i = 0; i < n; i++) tile[i] = bits[i];
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
        if (o->is_bool && o->column == 1 && length == LANES)
            truths(bits + place, LANES, tile + i);  // of a blocked layout
        else if (o->is_bool && o->column == 1)
            truths(bits + place, length, tile + i);
        else if (o->is_bool)
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
