/* The rivals: each type and operator as a programmer writes it for one array layout, with block lengths and operators
 * known to the compiler, lengths and strides not.
 *
 * Packing: p is packed, m memory, n elements (or blocks) of stride s doubles (bytes for structs), k planes of stride t,
 * x places in doubles. Reducing: y[i] = x[i] op y[i]. */
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ARGUMENTS long n, long s, long k, long t, const int *restrict x
typedef double *restrict to;
typedef const double *restrict from;

#define BLOCKS(B)                                                                       \
    void pack_vector_##B(to p, from m, ARGUMENTS)                                       \
    {                                                                                   \
        for (long i = 0; i < n; i++)                                                    \
            for (int j = 0; j < B; j++) p[i * B + j] = m[i * s + j];                    \
    }                                                                                   \
    void unpack_vector_##B(from p, to m, ARGUMENTS)                                     \
    {                                                                                   \
        for (long i = 0; i < n; i++)                                                    \
            for (int j = 0; j < B; j++) m[i * s + j] = p[i * B + j];                    \
    }                                                                                   \
    void pack_nested_##B(to p, from m, ARGUMENTS)                                       \
    {                                                                                   \
        for (long l = 0; l < k; l++)                                                    \
            for (long i = 0; i < n; i++)                                                \
                for (int j = 0; j < B; j++) p[(l * n + i) * B + j] = m[l * t + i * s + j]; \
    }                                                                                   \
    void unpack_nested_##B(from p, to m, ARGUMENTS)                                     \
    {                                                                                   \
        for (long l = 0; l < k; l++)                                                    \
            for (long i = 0; i < n; i++)                                                \
                for (int j = 0; j < B; j++) m[l * t + i * s + j] = p[(l * n + i) * B + j]; \
    }                                                                                   \
    void pack_indexed_##B(to p, from m, ARGUMENTS)                                      \
    {                                                                                   \
        for (long i = 0; i < n; i++)                                                    \
            for (int j = 0; j < B; j++) p[i * B + j] = m[x[i] + j];                     \
    }                                                                                   \
    void unpack_indexed_##B(from p, to m, ARGUMENTS)                                    \
    {                                                                                   \
        for (long i = 0; i < n; i++)                                                    \
            for (int j = 0; j < B; j++) m[x[i] + j] = p[i * B + j];                     \
    }

BLOCKS(1) BLOCKS(2) BLOCKS(3) BLOCKS(4) BLOCKS(8) BLOCKS(16) BLOCKS(100)

/* Structs of two or three members, of which P, Q and R bytes lie at 0, AT and TO. */
#define STRUCT(NAME, SIZE, P, AT, Q, TO, R)                                             \
    void pack_##NAME(char *restrict p, const char *restrict m, ARGUMENTS)               \
    {                                                                                   \
        for (long i = 0; i < n; i++, p += P + Q + R, m += SIZE)                         \
            memcpy(p, m, P), memcpy(p + P, m + AT, Q), memcpy(p + P + Q, m + TO, R);    \
    }                                                                                   \
    void unpack_##NAME(const char *restrict p, char *restrict m, ARGUMENTS)             \
    {                                                                                   \
        for (long i = 0; i < n; i++, p += P + Q + R, m += SIZE)                         \
            memcpy(m, p, P), memcpy(m + AT, p + P, Q), memcpy(m + TO, p + P + Q, R);    \
    }

STRUCT(int_double, 16, 4, 8, 8, 0, 0)
STRUCT(double_int, 16, 8, 8, 4, 0, 0)
STRUCT(char_int_short, 12, 1, 4, 4, 8, 2)
STRUCT(particle, 32, 24, 24, 1, 28, 4)
STRUCT(large, 104, 64, 72, 24, 100, 4)

#define REDUCE(NAME, T, F)                                                              \
    void NAME(T *restrict y, const T *restrict x, long n)                               \
    {                                                                                   \
        for (long i = 0; i < n; i++) { T a = x[i], b = y[i]; y[i] = F; }                \
    }
#define NUMBERS(NAME, T)                                                                \
    REDUCE(sum_##NAME, T, (T)(a + b))                                                   \
    REDUCE(prod_##NAME, T, (T)(a * b))                                                  \
    REDUCE(min_##NAME, T, a < b ? a : b)                                                \
    REDUCE(max_##NAME, T, a > b ? a : b)
#define INTEGERS(NAME, T)                                                               \
    NUMBERS(NAME, T)                                                                    \
    REDUCE(band_##NAME, T, a & b)                                                       \
    REDUCE(land_##NAME, T, a && b)                                                      \
    REDUCE(lxor_##NAME, T, !a != !b)

INTEGERS(int8, int8_t) INTEGERS(uint8, uint8_t) INTEGERS(int16, int16_t) INTEGERS(uint16, uint16_t)
INTEGERS(int32, int32_t) INTEGERS(int64, int64_t) NUMBERS(float, float) NUMBERS(double, double)
REDUCE(land_bool, bool, a && b)
REDUCE(lxor_bool, bool, a != b)

/* Without C's recovery of infinities, as -fcx-limited-range has it. */
#define COMPLEX(NAME, T)                                                                \
    void sum_##NAME(T *restrict y, const T *restrict x, long n)                         \
    {                                                                                   \
        for (long i = 0; i < 2 * n; i++) y[i] += x[i];                                  \
    }                                                                                   \
    void prod_##NAME(T *restrict y, const T *restrict x, long n)                        \
    {                                                                                   \
        for (long i = 0; i < 2 * n; i += 2) {                                           \
            T re = x[i] * y[i] - x[i + 1] * y[i + 1], im = x[i] * y[i + 1] + x[i + 1] * y[i]; \
            y[i] = re, y[i + 1] = im;                                                   \
        }                                                                               \
    }
COMPLEX(cfloat, float) COMPLEX(cdouble, double)

#define PAIR(NAME, V, I)                                                                \
    struct NAME { V value; I index; };                                                  \
    REDUCE(minloc_##NAME, struct NAME, a.value < b.value || (a.value == b.value && a.index < b.index) ? a : b) \
    REDUCE(maxloc_##NAME, struct NAME, a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b)
PAIR(double_int_, double, int) PAIR(float_int_, float, int) PAIR(int_int_, int, int) PAIR(long_int_, long, int)
