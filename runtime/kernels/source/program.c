// Element-wise programs: a chain of operators on tiles that stay in the first cache.
#include "philox.h"
#include "program.h"

enum { TILE = PROGRAM_TILE, FAR_TILE = 256, REGISTERS = 16 };

// Bytes of several operands and results from which they come from beyond the caches. Small
// tiles are faster then: each operand's reads begin sooner, and what comes in ahead of them
// leaves the tiles between steps where they are. Where all are near, steps cost more.
enum { FAR = 16 << 20 };

// truth: 0 for numbers, 1 for bytes that are 0 or 1; of what is drawn by the key in
// `array`, the bound.
typedef struct {
    int64_t array, mode, truth, outer[4], row, column;
} operand;

static int is_drawn(const operand *o) {
    return o->mode == READ_DRAWN || o->mode == READ_DRAWN_ROWS;
}

// apart: elements from the result to the other one. places: of drawn operands in a plane's
// mask; bases: of the others, and of the result. along: 0 for registers of equal numbers,
// else -1.
typedef struct {
    int64_t apart;
    const operand *operands;
    char *bases[REGISTERS + 1];
    int64_t places[REGISTERS], along[REGISTERS];
    round_keys keys[REGISTERS];
    float tiles[REGISTERS][TILE];
} plane;

// A tile of an operand that has one number for all of a plane.
static void fill(const operand *o, const char *base, int64_t n, float *tile) {
    const float value = o->truth ? *(const uint8_t *)base : *(const float *)base;
    for (int64_t i = 0; i < n; i++) tile[i] = value;
}

// n bytes, 0 or 1, as numbers.
INLINE void truths(const uint8_t *bits, int64_t n, float *tile) {
    for (int64_t i = 0; i < n; i++) tile[i] = bits[i];
}

// A tile of a mask that is drawn: n numbers, the first of position `place`.
static void drawn(const operand *o, const round_keys keys, int64_t place, int64_t n,
                  float *tile) {
    uint8_t bits[TILE + TOGETHER];
    const int64_t ahead = o->mode == READ_DRAWN ? place % 4 : 0;
    const uint64_t step = o->mode == READ_DRAWN ? 4 : (uint64_t)o->row / 4;
    for (int64_t i = 0; i < ahead + n; i += TOGETHER)
        numbers_below((uint64_t)o->truth, (uint64_t)place / 4 + (uint64_t)i / LANES * step,
                      step, keys, bits + i);
    truths(bits + ahead, n, tile);
}

// Elements `start` to `start + n` of a plane of rows of `width`, as the operand has them.
// The tile of one number is filled already.
static const float *loaded(const operand *o, const char *base, int64_t start, int64_t n,
                           int64_t width, float *tile) {
    const float *x = (const float *)base;
    const uint8_t *bits = (const uint8_t *)base;
    if (o->mode == READ_DENSE && !o->truth) {
        if (n % LANES == 0) return x + start;
        memcpy(tile, x + start, 4 * (size_t)n);
        return tile;
    }
    if (o->mode == READ_ONE) return tile;
    int64_t row = start / width, column = start % width;
    for (int64_t i = 0; i < n;) {
        const int64_t length = width - column < n - i ? width - column : n - i;
        const int64_t place = row * o->row + column * o->column;
        if (o->truth && o->column == 1 && length == LANES)
            truths(bits + place, LANES, tile + i);  // of a blocked layout
        else if (o->truth && o->column == 1)
            truths(bits + place, length, tile + i);
        else if (o->truth)
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
static void one_tile(const program_record *r, const call *c, plane *p, int64_t unit,
                     int64_t start, int64_t n) {
    float (*tiles)[TILE] = p->tiles;
    static const float nothing[TILE];
    const float *registers[REGISTERS];
    const instruction *code = at(c, r->code);
    for (int i = 0; i < REGISTERS; i++) registers[i] = nothing;
    for (int64_t i = 0; i < r->operands; i++) {
        const operand *o = p->operands + i;
        const int64_t rest = -n & (LANES - 1);
        if (rest && o->mode != READ_ONE) memset(tiles[i] + n, 0, 4 * (size_t)rest);
        if (is_drawn(o)) {
            const int64_t by = o->mode == READ_DRAWN ? start : start / LANES * o->row;
            drawn(o, p->keys[i], p->places[i] + by, n, tiles[i]);
            registers[i] = tiles[i];
        } else {
            registers[i] = loaded(o, p->bases[i], start, n, r->width, tiles[i]);
        }
    }
    // Steps of a whole tile write where the results go.
    float *to = (float *)p->bases[r->operands] + start, *other_to = to + p->apart;
    const int are_values = r->to == RESULT_VALUES || r->to == RESULT_PAIRS;
    const int is_direct = are_values && n % LANES == 0;
    for (const instruction *s = code; s < code + r->steps; s++) {
        float *out = tiles[s->out];
        if (is_direct && s->out == r->result) out = to;
        if (is_direct && s->out == r->other) out = other_to;
        const int64_t along[3] = {p->along[s->a], p->along[s->b], p->along[s->c]};
        step(s, registers[s->a], registers[s->b], registers[s->c], along, out, n);
        registers[s->out] = out;
    }
    const float *result = registers[r->result];
    if (are_values) {
        if (result != to) memcpy(to, result, 4 * (size_t)n);
        if (r->other < 0) return;
        const float *other = registers[r->other];
        if (other != other_to) memcpy(other_to, other, 4 * (size_t)n);
    } else if (r->to == RESULT_SUMS) {
        ((float *)at(c, r->out))[unit] = sum_of_tile(result, n);
    } else {
        uint8_t *bits = (uint8_t *)p->bases[r->operands] + start;
        for (int64_t i = 0; i < n; i++) bits[i] = result[i] != 0;
    }
}

// Elements of a tile, of so many in all. Sums are of whole tiles, whose number is known.
static int64_t tile_of(const program_record *r, const operand *operands, int64_t count) {
    int64_t streams = r->other < 0 ? 1 : 2;
    for (int64_t i = 0; i < r->operands; i++) streams += operands[i].mode == READ_DENSE;
    const int is_far = streams > 2 && 4 * streams * count >= FAR;
    return is_far && r->to != RESULT_SUMS ? FAR_TILE : TILE;
}

// A unit is a tile of a plane; planes are numbered by the outer axes. The other result is
// behind all planes of the first, or each of its planes behind the first's.
void program(const void *record, const call *c, int64_t part, int64_t parts) {
    const program_record *r = record;
    const int64_t sizes[4] = {r->size0, r->size1, r->size2, r->size3};
    const int64_t planes = sizes[0] * sizes[1] * sizes[2] * sizes[3];
    plane p;
    p.operands = at(c, r->table);
    const int64_t size = r->rows * r->width, tile = tile_of(r, p.operands, planes * size);
    const int64_t tiles = (size + tile - 1) / tile;
    const int64_t each = (size + tiles * LANES - 1) / (tiles * LANES) * LANES;
    const int64_t results = r->to == RESULT_PAIRS ? 2 : 1;
    p.apart = (r->to == RESULT_PAIRS ? 1 : planes) * size;
    for (int64_t i = 0; i < REGISTERS; i++)
        p.along[i] = -(i >= r->operands || p.operands[i].mode != READ_ONE);
    for (int64_t i = 0; i < r->operands; i++)
        if (is_drawn(p.operands + i))
            spread_key(*(const uint64_t *)at(c, p.operands[i].array), p.keys[i]);
    SHARE(planes * tiles);
    for (int64_t u = first; u < behind; u++) {
        const int64_t start = u % tiles * each;
        int64_t rest = u / tiles;
        if (u == first || start == 0) {
            int64_t index[4];
            for (int d = 3; d >= 0; d--) index[d] = rest % sizes[d], rest /= sizes[d];
            for (int64_t i = 0; i < r->operands; i++) {
                const operand *o = p.operands + i;
                int64_t place = 0;
                for (int d = 0; d < 4; d++) place += index[d] * o->outer[d];
                p.places[i] = place;
                if (is_drawn(o)) continue;
                p.bases[i] = (char *)at(c, o->array) + place * (o->truth ? 1 : 4);
                if (o->mode == READ_ONE) fill(o, p.bases[i], each, p.tiles[i]);
            }
            p.bases[r->operands] = (char *)at(c, r->out)
                                   + u / tiles * size * results
                                         * (r->to == RESULT_BOOLS ? 1 : 4);
        }
        const int64_t n = size - start < each ? size - start : each;
        one_tile(r, c, &p, u, start, n);
    }
}
