// Numbers of 8 bits: scales that cover an array, rounding, and codes for products.
#include "call.h"
#include "codes.h"
#include "ranges.h"
#include "rows.h"

void calibrate(const void *record, const call *c, int64_t part, int64_t parts) {
    const calibrate_record *r = record;
    float *scale = at(c, r->scale);
    int8_t *zero = at(c, r->zero);
    const float span = (float)(r->high - r->low), half = span / 2;
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++) {
        const float *x = (const float *)at(c, r->x) + u * r->x_row;
        vec low = {0}, high = {0}, none = {0};
        widen_range(x, r->width, &low, &high, &none);
        if (sum_of(none) != 0) *(int64_t *)at(c, r->fault) = 1;
        const float least = -greatest_of(-low), most = greatest_of(high);
        scale[u] = usable_scale(zero ? (most - least) / span
                                     : (-least > most ? -least : most) / half);
        if (zero) zero[u] = zero_of(least, scale[u], r->low, r->high);
    }
}

// Every number replaced by the value of its code.
void fake_quantize(const void *record, const call *c, int64_t part, int64_t parts) {
    const fake_quantize_record *r = record;
    const int64_t n = r->width;
    SHARE(r->rows);
    for (int64_t u = first; u < behind; u++) {
        const scheme s = scheme_of(c, r->scale, r->zero, r->one ? 0 : u, r->low, r->high);
        const float *x = (const float *)at(c, r->x) + u * n;
        float *out = (float *)at(c, r->out) + u * n;
        OVER(n,
             store(out + i, steps_of(load(x + i), &s) * s.scale),
             store_some(out + i,
                        steps_of(load_some(x + i, rest), &s) * s.scale, rest))
    }
}

// A line of n pixels from channels that lie apart: four to a number of 32 bits.
static void line_of_planes(const quantize_record *r, const call *c, int64_t image,
                           int64_t y, uint8_t *to, vec *wrong) {
    const scheme s = scheme_of(c, r->scale, r->zero, 0, r->low, r->high);
    const float *x = (const float *)at(c, r->x) + image * r->width * r->x_plane
                     + y * r->size1;
    for (int64_t group = 0; group < r->out_row; group += 4)
        for (int64_t i = 0; i < r->size1; i += WIDTH) {
            const int64_t some = r->size1 - i < WIDTH ? r->size1 - i : WIDTH;
            ivec four = {0};
            for (int64_t k = 0; k < 4; k++) {
                vec steps = {0};
                if (group + k < r->width) {
                    const float *plane = x + (group + k) * r->x_plane + i;
                    vec v = some < WIDTH ? load_some(plane, some) : load(plane);
                    steps = big_steps(v, &s) - (float)BIG;
                }
                *wrong += steps * 0;
                four |= (__builtin_convertvector(steps + s.zero, ivec) + SHIFT)
                        << (int)(8 * k);
            }
            if (r->out_row == 4)
                memcpy(to + 4 * i, &four, 4 * (size_t)some);
            else
                for (int64_t j = 0; j < some; j++)
                    memcpy(to + (i + j) * r->out_row + group, (char *)&four + 4 * j, 4);
        }
}

// A line of pixels whose channels lie in blocks, or side by side.
static void line_of_pixels(const quantize_record *r, const call *c, int64_t first,
                           uint8_t *to, vec *wrong) {
    scheme s = scheme_of(c, r->scale, r->zero, 0, r->low, r->high);
    for (int64_t u = first; u < first + r->size1; u++, to += r->out_row) {
        if (!r->one) s = scheme_of(c, r->scale, r->zero, u, r->low, r->high);
        const float *x = (const float *)at(c, r->x) + u * r->x_row;
        int64_t done = 0;
        for (; done + WIDTH <= r->width; done += WIDTH) {
            bytes b = codes_of(load(x + done / LANES * r->x_block + done % LANES), &s, wrong);
            memcpy(to + done, &b, WIDTH);
        }
        if (done < r->width) {
            const int64_t rest = r->width - done;
            vec v = load_some(x + done / LANES * r->x_block + done % LANES, rest);
            bytes b = codes_of(v, &s, wrong);
            if (done + WIDTH <= r->out_row) {  // zeros behind the rest are codes of 0
                memcpy(to + done, &b, WIDTH);
                done += WIDTH;
            } else {
                memcpy(to + done, &b, (size_t)rest);
                done += rest;
            }
        }
        if (done == r->out_row) continue;
        memset(to + done, SHIFT + (int)s.zero[0], (size_t)(r->out_row - done));
    }
}

// Codes as bytes, the channels of a pixel side by side, in rows of `out_row` bytes; maps
// have a margin that represents 0, and so have the places after the last channel. Without
// x the margin alone is written.
void quantize(const void *record, const call *c, int64_t part, int64_t parts) {
    const quantize_record *r = record;
    const int8_t *zeros = at(c, r->zero);
    const int nothing = SHIFT + (zeros ? zeros[0] : 0);
    const int64_t wide = (r->before1 + r->size1 + r->behind1) * r->out_row;
    const int64_t high = r->before0 + r->size0 + r->behind0;
    const int64_t before = r->before1 * r->out_row, behind_it = r->behind1 * r->out_row;
    vec wrong = {0};
    SHARE(r->images * high);
    for (int64_t u = first; u < behind; u++) {
        const int64_t image = u / high, y = u % high - r->before0;
        uint8_t *line = (uint8_t *)at(c, r->out) + u * wide;
        if (y < 0 || y >= r->size0) {
            memset(line, nothing, (size_t)wide);
            continue;
        }
        memset(line, nothing, (size_t)before);
        memset(line + wide - behind_it, nothing, (size_t)behind_it);
        if (r->x < 0) continue;
        if (r->x_plane)
            line_of_planes(r, c, image, y, line + before, &wrong);
        else
            line_of_pixels(r, c, (image * r->size0 + y) * r->size1, line + before, &wrong);
    }
    if (is_any_nan(wrong)) *(int64_t *)at(c, r->fault) = 1;
}
