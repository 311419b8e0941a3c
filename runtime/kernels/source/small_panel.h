// Panels of quantized weights as floats: see small_panel.c.
#pragma once
#include <stdint.h>

// Weights as "dots8" and "dots4" of gemv have them, and a panel's outputs.
typedef struct {
    const uint8_t *codes;
    const float *scales;
    const int32_t *zeros;
    int64_t bits, outs, ins, block, wide;
} small_weights;

// out (ins, wide): a panel's weights, zeros after the last output.
void small_panel(const small_weights *w, int64_t panel, float *out);
