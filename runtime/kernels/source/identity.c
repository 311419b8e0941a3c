// Identity of a library, checked before a plan runs: is it the one that the plan was
// made for, and does this processor have the instructions that it was compiled for?
#include "half.h"
#include "identity.h"

#if defined(__x86_64__)
#include <cpuid.h>

// Whether the operating system keeps these registers (bits of XCR0).
static int keeps(uint32_t wanted) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & wanted) == wanted;
}

static int fits(void) {
    uint32_t a, b, c, d, wanted_b = 0, wanted_c = 0, wanted_1 = 0;
#ifdef __AVX2__
    wanted_1 |= bit_OSXSAVE | bit_AVX;
    wanted_b |= bit_AVX2;
#endif
#ifdef __FMA__
    wanted_1 |= bit_FMA;
#endif
#ifdef __BMI2__
    wanted_b |= bit_BMI2;
#endif
#ifdef __AVX512F__
    wanted_b |= bit_AVX512F;
#endif
#ifdef __AVX512BW__
    wanted_b |= bit_AVX512BW;
#endif
#ifdef __AVX512DQ__
    wanted_b |= bit_AVX512DQ;
#endif
#ifdef __AVX512VL__
    wanted_b |= bit_AVX512VL;
#endif
#ifdef __AVX512VNNI__
    wanted_c |= bit_AVX512VNNI;
#endif
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & wanted_1) != wanted_1) return 0;
    if (wanted_1 & bit_OSXSAVE && !keeps(wanted_b & bit_AVX512F ? 0xe6 : 6)) return 0;
    if (!(wanted_b | wanted_c)) return 1;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    return (b & wanted_b) == wanted_b && (c & wanted_c) == wanted_c;
}

static int has_bf16(void) {
    uint32_t a, b, c, d;
    return HAS_BF16 && fits() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 5 & 1;
}
#else
static int fits(void) { return 1; }
static int has_bf16(void) { return 0; }
#endif

const char *library_identity(void) { return IDENTITY; }
int64_t processor_fits(void) { return fits(); }
int64_t multiplies_bf16(void) { return has_bf16(); }
