// The entry of the interpreter.
#pragma once
#include "records.h"

// Execute n < 4096 records with up to `count` threads. A caller that finds the pool
// busy executes them alone.
void run(const record_head *t, int64_t n, char *const *arrays, int64_t count);
