// Discrete Fourier transforms along an axis, a vector of signals at a time.
//
// Stockham's algorithm: each pass splits transforms of `length` into `radix` ones that
// are as much shorter, and leaves results in their order. A real signal of even length
// is a complex one of half the length, whose spectrum is then taken apart.
#include "call.h"
#include "turn.h"

enum { MOST = 31 };  // the largest radix, as in lowering

typedef struct {
    vec re, im;
} pair;

// The number at `place` of `count` around the unit circle, clockwise, from a table.
typedef struct {
    const float *table;
    int64_t count;
} roots;

INLINE pair plus(pair a, pair b) { return (pair){a.re + b.re, a.im + b.im}; }
INLINE pair minus(pair a, pair b) { return (pair){a.re - b.re, a.im - b.im}; }
INLINE pair rotated(pair a) { return (pair){a.im, -a.re}; }  // times -i
INLINE pair times(pair a, const float *w) {
    return (pair){a.re * w[0] - a.im * w[1], a.re * w[1] + a.im * w[0]};
}

INLINE void transform(const int64_t radix, pair *x, roots w) {
    if (radix == 2) {
        const pair a = x[0];
        x[0] = plus(a, x[1]);
        x[1] = minus(a, x[1]);
    } else if (radix == 4) {
        const pair a = plus(x[0], x[2]), b = minus(x[0], x[2]);
        const pair c = plus(x[1], x[3]), d = rotated(minus(x[1], x[3]));
        x[0] = plus(a, c);
        x[1] = plus(b, d);
        x[2] = minus(a, c);
        x[3] = minus(b, d);
    } else {  // odd: cosines of sums and sines of differences of opposite ones
        const int64_t half = radix / 2, step = w.count / radix;
        pair sum[MOST / 2], difference[MOST / 2];
        const pair middle = x[0];
        UNROLLED for (int64_t j = 0; j < half; j++) {
            sum[j] = plus(x[j + 1], x[radix - 1 - j]);
            difference[j] = minus(x[j + 1], x[radix - 1 - j]);
            x[0] = plus(x[0], sum[j]);
        }
        UNROLLED for (int64_t k = 1; k <= half; k++) {
            pair even = middle, odd = {{0}, {0}};
            UNROLLED for (int64_t j = 0; j < half; j++) {
                const float *turn = w.table + 2 * ((j + 1) * k % radix * step);
                even.re += sum[j].re * turn[0];
                even.im += sum[j].im * turn[0];
                odd.re -= difference[j].im * turn[1];
                odd.im += difference[j].re * turn[1];
            }
            x[k] = plus(even, odd);
            x[radix - k] = minus(even, odd);
        }
    }
}

// One pass over `stride` interleaved transforms of `length`.
INLINE void pass(
    const int64_t radix, const pair *in, pair *out, int64_t length, int64_t stride,
    roots w
) {
    const int64_t parts = length / radix, step = w.count / length;
    for (int64_t p = 0; p < parts; p++)
        for (int64_t q = 0; q < stride; q++) {
            pair x[MOST];
            UNROLLED for (int64_t k = 0; k < radix; k++)
                x[k] = in[q + stride * (p + parts * k)];
            transform(radix, x, w);
            out[q + stride * radix * p] = x[0];
            UNROLLED for (int64_t k = 1; k < radix; k++)
                out[q + stride * (radix * p + k)] =
                    p ? times(x[k], w.table + 2 * step * p * k) : x[k];
        }
}

static int64_t factor(int64_t n) {
    if (n % 4 == 0) return 4;
    int64_t found = 2;
    while (n % found) found++;
    return found;
}

// The transform of `size` numbers; which of both buffers has it.
static pair *transformed(pair *in, pair *out, int64_t size, roots w) {
    for (int64_t stride = 1, length = size; length > 1;) {
        const int64_t radix = factor(length);
        if (radix == 2)
            pass(2, in, out, length, stride, w);
        else if (radix == 3)
            pass(3, in, out, length, stride, w);
        else if (radix == 4)
            pass(4, in, out, length, stride, w);
        else if (radix == 5)
            pass(5, in, out, length, stride, w);
        else
            pass(radix, in, out, length, stride, w);
        length /= radix;
        stride *= radix;
        pair *const read = in;
        in = out;
        out = read;
    }
    return in;
}

// The first half of a real signal's spectrum, z that of its numbers taken as pairs.
static void taken_apart(const pair *z, pair *out, int64_t half, roots w) {
    const vec zero = {0};
    out[0] = (pair){z[0].re + z[0].im, zero};
    out[half] = (pair){z[0].re - z[0].im, zero};
    for (int64_t k = 1; k < half; k++) {
        const pair back = {z[half - k].re, -z[half - k].im};
        const pair even = plus(z[k], back), odd = rotated(minus(z[k], back));
        const pair sum = plus(even, times(odd, w.table + 2 * k));
        out[k] = (pair){sum.re * 0.5f, sum.im * 0.5f};
    }
}

// Numbers of up to WIDTH signals, zeros behind them.
static void read_signals(
    const dft_record *r, const float *x, int64_t start, int64_t signals, pair *out
) {
    const int64_t width = r->x_pair, size = r->length, half = size / 2;
    const int64_t most = r->is_half ? half + 1 : size;
    const int64_t taken = r->places < most ? r->places : most;
    const int64_t next = r->is_packed ? 1 : 2;  // a real signal's numbers are not pairs
    const int is_dense = r->inner == 1 && next == width;
    const int64_t turned = is_dense ? taken * width / WIDTH * WIDTH : 0;
    float *to = (float *)out;
    memset(out, 0, (size_t)(r->is_packed ? half : size) * sizeof(pair));
    for (int64_t n = 0; n < turned; n += WIDTH) {
        vec rows[WIDTH] = {0};
        for (int64_t t = 0; t < signals; t++)
            rows[t] = load(x + (start + t) * r->places * width + n);
        turn(rows);
        memcpy(to + n * WIDTH, rows, sizeof rows);
    }
    for (int64_t t = 0; t < signals; t++) {
        const int64_t outer = (start + t) / r->inner, inner = (start + t) % r->inner;
        const float *from = x + (outer * r->places * r->inner + inner) * width;
        for (int64_t j = turned / width; j < taken; j++)
            for (int64_t i = 0; i < width; i++)
                to[(next * j + i) * WIDTH + t] = from[j * r->inner * width + i];
    }
    if (!r->is_half) return;
    out[0].im = (vec){0};
    if (size % 2 == 0) out[half].im = (vec){0};
    for (int64_t k = 1; k <= (size - 1) / 2; k++)
        out[size - k] = (pair){out[k].re, -out[k].im};
}

static void write_spectra(
    const dft_record *r, const pair *y, float *out, int64_t start, int64_t signals
) {
    const int64_t width = r->is_half ? 1 : 2;
    const float scale = r->is_inverse ? 1 / (float)r->length : 1;
    const float *from = (const float *)y;
    const int is_dense = r->inner == 1 && width == 2;
    const int64_t turned = is_dense ? r->results * width / WIDTH * WIDTH : 0;
    for (int64_t n = 0; n < turned; n += WIDTH) {
        vec rows[WIDTH];
        for (int64_t j = 0; j < WIDTH; j++) rows[j] = load(from + (n + j) * WIDTH) * scale;
        turn(rows);
        for (int64_t t = 0; t < signals; t++)
            store(out + (start + t) * r->results * width + n, rows[t]);
    }
    for (int64_t t = 0; t < signals; t++) {
        const int64_t outer = (start + t) / r->inner, inner = (start + t) % r->inner;
        float *to = out + (outer * r->results * r->inner + inner) * width;
        for (int64_t k = turned / width; k < r->results; k++)
            for (int64_t i = 0; i < width; i++)
                to[k * r->inner * width + i] = from[(2 * k + i) * WIDTH + t] * scale;
    }
}

// The inverse: the transform, real and imaginary parts in the other's place.
static void swapped(pair *x, int64_t count) {
    for (int64_t k = 0; k < count; k++) x[k] = (pair){x[k].im, x[k].re};
}

// Whether all numbers are finite, for which kernels are made.
static int are_finite(const pair *x, int64_t count) {
    vec sum = {0};
    for (int64_t k = 0; k < count; k++) sum += x[k].re * 0 + x[k].im * 0;
    return !any(sum != sum);
}

void dft(const void *record, const call *c, int64_t part, int64_t parts) {
    const dft_record *r = record;
    const int64_t signals = r->outer * r->inner;
    const int64_t size = r->is_packed ? r->length / 2 : r->length;
    const roots w = {at(c, r->table), r->length};
    pair *one = (pair *)((float *)at(c, r->space) + part * r->room);
    pair *other = one + r->length + 1;
    SHARE((signals + WIDTH - 1) / WIDTH);
    for (int64_t u = first; u < behind; u++) {
        const int64_t start = u * WIDTH, rest = signals - start;
        const int64_t count = rest < WIDTH ? rest : WIDTH;
        read_signals(r, at(c, r->x), start, count, one);
        if (r->fault >= 0 && !are_finite(one, size)) *(int64_t *)at(c, r->fault) = 1;
        if (r->is_inverse) swapped(one, size);
        pair *y = transformed(one, other, size, w);
        if (r->is_inverse) swapped(y, size);
        if (r->is_packed) {
            pair *const spectrum = y == one ? other : one;
            taken_apart(y, spectrum, size, w);
            y = spectrum;
        }
        write_spectra(r, y, at(c, r->out), start, count);
    }
}
