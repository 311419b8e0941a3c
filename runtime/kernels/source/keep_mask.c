// Dropout's masks: bytes that are 1 with a probability, drawn by a key and a position.
#include <math.h>

#include "call.h"
#include "philox.h"

enum {
    EACH = 4 * COUNTERS,                // numbers of a vector of counters
    TOGETHER = ABREAST_COUNTERS * EACH,
    UNIT = 1024                         // of what threads share
};

typedef uint32_t fours __attribute__((vector_size(4 * COUNTERS)));

// Whether the numbers from counter `first` on are below the bound, in their order.
static void below(uint64_t first, const round_keys keys, uint64_t bound, uint8_t *out) {
    counters words[ABREAST_COUNTERS][4];
    philox(first, keys, words);
    UNROLLED for (int j = 0; j < ABREAST_COUNTERS; j++) {
        counters found = {0};
        UNROLLED for (int i = 0; i < 4; i++)  // a negative difference has bits above
            found |= ((words[j][i] & 0xffffffff) - bound) & (1ull << (32 + 8 * i));
        const fours bytes = __builtin_convertvector(found >> 32, fours);
        memcpy(out + j * EACH, &bytes, sizeof bytes);
    }
}

// Numbers of 24 bits, as a GPU's: position p has word p % 4 of counter p / 4.
void keep_mask(const void *record, const call *c, int64_t part, int64_t parts) {
    const keep_mask_record *r = record;
    const double share = ceil((double)(float)r->probability * (1 << 24));
    const uint64_t bound = (uint64_t)fmin(fmax(share, 0), 1 << 24) << 8;
    uint8_t *out = at(c, r->out);
    round_keys keys;
    spread_key(*(const uint64_t *)at(c, r->key), keys);
    SHARE((r->count + UNIT - 1) / UNIT);
    const int64_t end = behind * UNIT < r->count ? behind * UNIT : r->count;
    int64_t i = first * UNIT;
    for (; i + TOGETHER <= end; i += TOGETHER) below((uint64_t)i / 4, keys, bound, out + i);
    if (i < end) {
        uint8_t rest[TOGETHER];
        below((uint64_t)i / 4, keys, bound, rest);
        memcpy(out + i, rest, (size_t)(end - i));
    }
}
