// Masks of attention: numbers to add to scores, or booleans, true where a key takes part.
#pragma once
#include "vector.h"

// A row of n scores; the mask's elements lie `step` apart.
static inline void masked(const char *mask, int is_bool, int64_t step, int64_t n,
                          float blocked, float *scores) {
    if (!is_bool)
        for (int64_t i = 0; i < n; i++) scores[i] += ((const float *)mask)[i * step];
    else if (step == 1)  // apart, as it becomes vectors
        for (int64_t i = 0; i < n; i++) scores[i] = mask[i] ? scores[i] : blocked;
    else
        for (int64_t i = 0; i < n; i++)
            scores[i] = mask[i * step] ? scores[i] : blocked;
}
