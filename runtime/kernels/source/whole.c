// Element-wise steps on integers and truth values: places, lengths, masks.
#include "call.h"

enum { TILE = 256 };

// What fits no integer of the result's bits is the least one, as in x86's conversion.
INLINE int64_t truncated(float value, int is_short) {
    const float end = is_short ? 0x1p31f : 0x1p63f;
    if (value >= -end && value < end) return (int64_t)value;
    return is_short ? INT32_MIN : INT64_MIN;
}

#define LOAD(kind, type, convert)                                                   \
    case WHOLE_##kind:                                                              \
        for (int64_t i = 0; i < n; i++) to[i] = convert(((const type *)from)[i * by]); \
        return;

// Some elements as integers; `by`: the distance between two of them. is_short: whether
// those of single precision become integers of 32 bits, as for any result of fewer.
static void load_whole(int64_t *to, const void *from, int64_t kind, int64_t by,
                       int64_t n, int is_short) {
    switch (kind) {
        LOAD(INT64, int64_t, )
        LOAD(BOOL, uint8_t, 0 !=)
        LOAD(INT32, int32_t, )
        LOAD(INT8, int8_t, )
        LOAD(UINT8, uint8_t, )
        LOAD(INT16, int16_t, )
        case WHOLE_FLOAT32:
            for (int64_t i = 0; i < n; i++)
                to[i] = truncated(((const float *)from)[i * by], is_short);
    }
}

#define STORE(kind, type, convert)                                               \
    case WHOLE_##kind:                                                           \
        for (int64_t i = 0; i < n; i++) ((type *)to)[i] = (type)(convert from[i]); \
        return;

// Integers of fewer bits keep the low ones.
static void store_whole(void *to, const int64_t *from, int64_t kind, int64_t n) {
    switch (kind) {
        STORE(INT64, int64_t, )
        STORE(BOOL, uint8_t, 0 !=)
        STORE(FLOAT32, float, )
        STORE(INT32, int32_t, )
        STORE(INT8, int8_t, )
        STORE(UINT8, uint8_t, )
        STORE(INT16, int16_t, )
    }
}

// Quotients as NumPy has them: 0 where b is 0, and no overflow.
INLINE int64_t towards_zero(int64_t a, int64_t b) {
    if (b == 0) return 0;
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

// The remainder with the sign of a.
INLINE int64_t remainder_of(int64_t a, int64_t b) {
    return b == 0 || b == -1 ? 0 : a % b;
}

INLINE int64_t is_below_zero(int64_t a, int64_t b) {
    const int64_t rest = remainder_of(a, b);
    return rest != 0 && (rest < 0) != (b < 0);
}

INLINE int64_t wrapped(uint64_t value) { return (int64_t)value; }

#define EACH(name, value)                         \
    case WHOLE_DO_##name:                         \
        for (int64_t i = 0; i < n; i++) {         \
            const int64_t a = x[i], b = y[i];     \
            (void)b;                              \
            out[i] = value;                       \
        }                                         \
        return;

// out may be x.
static void do_whole(int64_t step, const int64_t *x, const int64_t *y,
                     const int64_t *z, int64_t *out, int64_t n) {
    switch (step) {
        EACH(NONE, a)
        EACH(ADD, wrapped((uint64_t)a + (uint64_t)b))
        EACH(SUB, wrapped((uint64_t)a - (uint64_t)b))
        EACH(MUL, wrapped((uint64_t)a * (uint64_t)b))
        EACH(INT_DIV, towards_zero(a, b))
        EACH(FLOOR_DIV, towards_zero(a, b) - is_below_zero(a, b))
        EACH(MOD, remainder_of(a, b) + (is_below_zero(a, b) ? b : 0))
        EACH(FMOD, remainder_of(a, b))
        EACH(MAXIMUM, a > b ? a : b)
        EACH(MINIMUM, a < b ? a : b)
        EACH(NEG, wrapped(0 - (uint64_t)a))
        EACH(ABS_, a < 0 ? wrapped(0 - (uint64_t)a) : a)
        EACH(SIGN, (a > 0) - (a < 0))
        EACH(GREATER, a > b)
        EACH(GREATER_OR_EQUAL, a >= b)
        EACH(LESS, a < b)
        EACH(LESS_OR_EQUAL, a <= b)
        EACH(EQUAL, a == b)
        EACH(NOT_EQUAL, a != b)
        EACH(LOGICAL_AND, a != 0 && b != 0)
        EACH(LOGICAL_OR, a != 0 || b != 0)
        EACH(LOGICAL_XOR, (a != 0) != (b != 0))
        EACH(LOGICAL_NOT, a == 0)
        EACH(BITWISE_AND, a & b)
        EACH(BITWISE_OR, a | b)
        EACH(BITWISE_XOR, a ^ b)
        EACH(BITWISE_NOT, ~a)
        EACH(WHERE, a != 0 ? b : z[i])
    }
}

INLINE int64_t bytes_of(int64_t kind) {
    if (kind == WHOLE_INT64) return 8;
    if (kind == WHOLE_INT16) return 2;
    return kind == WHOLE_FLOAT32 || kind == WHOLE_INT32 ? 4 : 1;
}

// Rows along the last of six axes; the result is dense.
void whole(const void *record, const call *c, int64_t part, int64_t parts) {
    const whole_record *r = record;
    const char *from[3] = {at(c, r->a), at(c, r->b), at(c, r->c)};
    char *out = at(c, r->out);
    const int64_t kinds[3] = {r->a_kind, r->b_kind, r->c_kind};
    const int64_t *sizes = &r->size0, *steps[3] = {&r->a0, &r->b0, &r->c0};
    const int64_t width = r->size5, size = bytes_of(r->to);
    int64_t tiles[3][TILE];
    SHARE(r->size0 * r->size1 * r->size2 * r->size3 * r->size4);
    for (int64_t u = first; u < behind; u++) {
        int64_t starts[3] = {0}, rest = u;
        for (int axis = 4; axis >= 0; axis--) {
            const int64_t place = rest % sizes[axis];
            rest /= sizes[axis];
            for (int k = 0; k < 3; k++) starts[k] += place * steps[k][axis];
        }
        for (int64_t i = 0; i < width; i += TILE) {
            const int64_t n = width - i < TILE ? width - i : TILE;
            for (int k = 0; k < r->operands; k++) {
                const int64_t place = starts[k] + i * steps[k][5];
                load_whole(tiles[k], from[k] + place * bytes_of(kinds[k]), kinds[k],
                           steps[k][5], n, r->to != WHOLE_INT64);
            }
            do_whole(r->step, tiles[0], tiles[1], tiles[2], tiles[0], n);
            store_whole(out + (u * width + i) * size, tiles[0], r->to, n);
        }
    }
}
