// Panels of weights in the order that convolutions use them: see pack.c.
#pragma once
#include "records.h"

void pack_panel(const pack_record *r, const float *weights, int64_t panel, float *out);

// Cache lines in rows: `row` of them side by side, rows `step` floats apart.
typedef struct {
    const float *first;
    int64_t rows, row, step;
} lines;

// Those of a panel's weights before they are packed.
lines panel_lines(const pack_record *r, const float *weights, int64_t panel);
