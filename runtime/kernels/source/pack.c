// Weights in the order that convolutions use them, made anew for every step of training.
//
// Of (group, output, input, tap), whose distances are told, they become (group, `wide`
// outputs, `depth` inputs, tap, input, output), zeros behind the last output.
#include "call.h"

void pack(const void *record, const call *c, int64_t part, int64_t parts) {
    const pack_record *r = record;
    const int64_t panels = (r->outs + r->wide - 1) / r->wide, taps = r->taps;
    SHARE(r->groups * panels);
    for (int64_t u = first; u < behind; u++) {
        const int64_t out = u % panels * r->wide;
        const int64_t some = r->outs - out < r->wide ? r->outs - out : r->wide;
        const float *x = (const float *)at(c, r->x) + u / panels * r->group_step
                         + out * r->out_step;
        float *to = (float *)at(c, r->out) + u * r->ins * taps * r->wide;
        for (int64_t start = 0; start < r->ins; start += r->depth) {
            const int64_t left = r->ins - start;
            const int64_t depth = left < r->depth ? left : r->depth;
            for (int64_t k = 0; k < depth; k++)
                for (int64_t t = 0; t < taps; t++) {
                    const float *from = x + (start + k) * r->in_step + t;
                    float *row = to + (t * depth + k) * r->wide;
                    for (int64_t i = 0; i < some; i++) row[i] = from[i * r->out_step];
                    for (int64_t i = some; i < r->wide; i++) row[i] = 0;
                }
            to += depth * taps * r->wide;
        }
    }
}
