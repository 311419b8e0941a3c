// Panels of weights in the order that convolutions use them: see pack.c.
#pragma once
#include "records.h"

void pack_panel(const pack_record *r, const float *weights, int64_t panel, float *out);
