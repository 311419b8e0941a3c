// Panels of weights in the order that convolutions use them: see pack.c.
#pragma once
#include "records.h"

void pack_panel(const pack_record *r, const float *weights, int64_t panel, float *out);

// Ask for a share of a panel's weights, part of parts, before they are packed.
void prefetch_panel(const pack_record *r, const float *weights, int64_t panel, int64_t part,
                    int64_t parts);
