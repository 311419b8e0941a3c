// Dropout's masks: bytes that are 1 below a bound, drawn by a key and a position.
#include "call.h"
#include "philox.h"

enum { UNIT = 1024 };  // numbers of what threads share

// Position p has word p % 4 of counter p / 4.
void keep_mask(const void *record, const call *c, int64_t part, int64_t parts) {
    const keep_mask_record *r = record;
    const uint64_t bound = (uint64_t)r->bound;
    uint8_t *out = at(c, r->out);
    round_keys keys;
    spread_key(*(const uint64_t *)at(c, r->key), keys);
    SHARE((r->count + UNIT - 1) / UNIT);
    const int64_t end = behind * UNIT < r->count ? behind * UNIT : r->count;
    int64_t i = first * UNIT;
    for (; i + TOGETHER <= end; i += TOGETHER)
        numbers_below(bound, (uint64_t)i / 4, 4, keys, out + i);
    if (i < end) {
        uint8_t rest[TOGETHER];
        numbers_below(bound, (uint64_t)i / 4, 4, keys, rest);
        memcpy(out + i, rest, (size_t)(end - i));
    }
}
