// New rows of a key/value cache, written where its next positions are.
#include "call.h"

// x (size0, size1, rows, width) to out (size0, size1, room, width) from `places` on.
void put(const void *record, const call *c, int64_t part, int64_t parts) {
    const put_record *r = record;
    const int64_t start = *(const int64_t *)at(c, r->places);
    if (start < 0 || start + r->rows > r->room) {
        *(int64_t *)at(c, r->fault) = 1;
        return;
    }
    SHARE(r->size0 * r->size1);
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u / r->size1 * r->x0
                         + u % r->size1 * r->x1;
        float *out = (float *)at(c, r->out) + (u * r->room + start) * r->width;
        for (int64_t t = 0; t < r->rows; t++)
            memcpy(out + t * r->width, x + t * r->x2, 4 * (size_t)r->width);
    }
}
