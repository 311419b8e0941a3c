// Copies between layouts: six axes, any distance between elements on either side.
#include "call.h"
#include "turn.h"

// Any distances, square by square.
static void strided(const float *x, int64_t xr, int64_t xc, float *y, int64_t yr,
                    int64_t yc, int64_t rows, int64_t columns) {
    enum { SIDE = 16 };
    for (int64_t r = 0; r < rows; r += SIDE)
        for (int64_t c = 0; c < columns; c += SIDE) {
            const int64_t re = r + SIDE < rows ? r + SIDE : rows;
            const int64_t ce = c + SIDE < columns ? c + SIDE : columns;
            for (int64_t i = r; i < re; i++)
                for (int64_t j = c; j < ce; j++)
                    y[i * yr + j * yc] = x[i * xr + j * xc];
        }
}

static void plane(const copy_record *r, const float *x, float *y) {
    const int64_t rows = r->size4, columns = r->size5;
    if (r->x5 == 1 && r->y5 == 1) {
        for (int64_t i = 0; i < rows; i++)
            memcpy(y + i * r->y4, x + i * r->x4, 4 * (size_t)columns);
        return;
    }
    if (r->x4 == 1 && r->y5 == 1)
        turned(x, r->x5, y, r->y4, rows, columns);
    else
        strided(x, r->x4, r->x5, y, r->y4, r->y5, rows, columns);
}

// The four outer axes are shared out, or the rows where there is only one plane.
void copy(const void *record, const call *c, int64_t part, int64_t parts) {
    const copy_record *r = record;
    const float *x = at(c, r->x);
    float *y = at(c, r->out);
    const int64_t planes = r->size0 * r->size1 * r->size2 * r->size3;
    if (planes == 1) {
        SHARE(r->size4);
        copy_record own = *r;
        own.size4 = behind - first;
        plane(&own, x + first * r->x4, y + first * r->y4);
        return;
    }
    SHARE(planes);
    for (int64_t u = first; u < behind; u++) {
        const int64_t d = u % r->size3, e = u / r->size3, b = e % r->size2,
                      f = e / r->size2, a = f % r->size1, o = f / r->size1;
        plane(r, x + o * r->x0 + a * r->x1 + b * r->x2 + d * r->x3,
              y + o * r->y0 + a * r->y1 + b * r->y2 + d * r->y3);
    }
}
