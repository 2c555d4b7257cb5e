// Sixteen lanes of 32 bits for products: one fp32 value in each, or two of bf16.
#pragma once
#include "simd.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define K3_INLINE inline __attribute__((always_inline))
// Keeps what was loaded in a register: a load for every use would be the limit.
#if defined(__AVX512F__)
#define K3_ONCE(x) asm("" : "+v"(x))
#else
#define K3_ONCE(x)
#endif

namespace k3 {

constexpr int64_t LANES = 16;
typedef float Sums __attribute__((vector_size(64)));
typedef int32_t Words __attribute__((vector_size(64)));
typedef uint32_t UWords __attribute__((vector_size(64)));
typedef Words AnyWords __attribute__((aligned(1), may_alias));

K3_INLINE Words words(const void* p) {
#if defined(__AVX512F__)
    // Of the plain form below the compiler takes some loads through the stack.
    return (Words)_mm512_loadu_si512(p);
#else
    return *static_cast<const AnyWords*>(p);
#endif
}
K3_INLINE Sums floats(const float* p) { return (Sums)words(p); }
K3_INLINE void put(float* p, Sums x) { *reinterpret_cast<AnyWords*>(p) = (Words)x; }

// The first bytes of a vector, then zeros; nothing behind them is touched.
K3_INLINE Words words_part(const void* p, int64_t bytes) {
    alignas(64) char row[64] = {};
    std::memcpy(row, p, static_cast<size_t>(bytes));
    return words(row);
}

K3_INLINE float total(Sums x) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)x);
#else
    float s[16];
    std::memcpy(s, &x, sizeof s);
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; ++i) s[i] += s[i + half];
    return s[0];
#endif
}

#if defined(__AVX512F__)
// Of two vectors side by side, and from them the totals of four.
K3_INLINE __m512 total_two(Sums a, Sums b) {
    return _mm512_add_ps(_mm512_unpacklo_ps((__m512)a, (__m512)b),
                         _mm512_unpackhi_ps((__m512)a, (__m512)b));
}
K3_INLINE void total_both(__m512 ab, __m512 cd, float* y) {
    __m512d p = _mm512_castps_pd(ab), q = _mm512_castps_pd(cd);
    __m512 all = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(p, q)),
                               _mm512_castpd_ps(_mm512_unpackhi_pd(p, q)));
    __m256 half =
        _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    _mm_storeu_ps(
        y, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
}
#endif

// The totals of four vectors, side by side.
K3_INLINE void total4(const Sums* x, float* y) {
#if defined(__AVX512F__)
    total_both(total_two(x[0], x[1]), total_two(x[2], x[3]), y);
#else
    for (int i = 0; i < 4; ++i) y[i] = total(x[i]);
#endif
}

// The even and the odd ones of 32 bf16 values, in fp32.
K3_INLINE Sums even(Words pairs) { return (Sums)(pairs << 16); }
K3_INLINE Sums odd(Words pairs) {
    return (Sums)(pairs & static_cast<int32_t>(0xffff0000));
}

K3_INLINE float narrowed(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    if (x != x) return x;
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
    std::memcpy(&x, &bits, 4);
    return x;
}

// What a trunk is: `dot` adds a lane's products to its sum, `spread` reads 64 bytes of
// a matrix as vectors of values, `row` widens sixteen of its elements, `round` and
// `kept` are what storing a value, or a vector of them, would leave of it. A matrix may
// be narrower than values are; what has none to read is the `trunk`'s.
struct Fp32 {
    using value = float;
    using weight = float;
    using trunk = Fp32;
    static constexpr int64_t PER_LANE = 1;
    static constexpr int VECTORS = 1;
    static K3_INLINE void spread(Words w, Words* a) { a[0] = w; }
    static K3_INLINE Sums dot(Sums sum, Words a, Words b) {
        return sum + (Sums)a * (Sums)b;
    }
    static K3_INLINE Sums row(const weight* p) { return floats(p); }
    static K3_INLINE float round(float x) { return x; }
    static K3_INLINE vec kept(vec x) { return x; }
    static K3_INLINE void round_row(float*, int64_t) {}
    static K3_INLINE void pack(const float* x, value* y, int64_t n) {
        std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
    }
};

struct Bf16 {
    using value = bf16;
    using weight = bf16;
    using trunk = Bf16;
    static constexpr int64_t PER_LANE = 2;
    static constexpr int VECTORS = 1;
    static K3_INLINE void spread(Words w, Words* a) { a[0] = w; }
    static K3_INLINE Sums dot(Sums sum, Words a, Words b) {
#if defined(__AVX512BF16__)
        // By the intrinsic GCC 12 takes operands that are used twice through the stack.
        asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
        return sum;
#else
        return sum + even(a) * even(b) + odd(a) * odd(b);
#endif
    }
    static K3_INLINE Sums row(const weight* p) {
#if defined(__AVX512F__)
        __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return (Sums)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
#else
        Sums y;
        for (int i = 0; i < 16; ++i) y[i] = widen(p[i]);
        return y;
#endif
    }
    static K3_INLINE float round(float x) { return narrowed(x); }
    static K3_INLINE vec kept(vec x) {
        bf16 lanes[W];
        store(lanes, x);
        return load(lanes);
    }
    static K3_INLINE void round_row(float* x, int64_t n) {
        over(n,
             [&](int64_t i, int64_t m) { store_n(x + i, kept(load_n(x + i, m)), m); });
    }
    static K3_INLINE void pack(const float* x, value* y, int64_t n) {
        over(n, [&](int64_t i, int64_t m) { store_n(y + i, load_n(x + i, m), m); });
    }
};

// fp32 with matrices as a checkpoint stores them: bf16, widened exactly when it is
// read, so that all is summed as of widened ones.
struct Stored : Fp32 {
    using weight = bf16;
    static constexpr int VECTORS = 2;
    static K3_INLINE void spread(Words w, Words* a) {
#if defined(__AVX512F__)
        // One permutation puts sixteen elements into upper halves, zeros below.
        alignas(64) static const uint16_t places[64] = {
            0,  0,  0,  1,  0,  2,  0,  3,  0,  4,  0,  5,  0,  6,  0,  7,
            0,  8,  0,  9,  0,  10, 0,  11, 0,  12, 0,  13, 0,  14, 0,  15,
            0,  16, 0,  17, 0,  18, 0,  19, 0,  20, 0,  21, 0,  22, 0,  23,
            0,  24, 0,  25, 0,  26, 0,  27, 0,  28, 0,  29, 0,  30, 0,  31};
        for (int i = 0; i < 2; ++i)
            a[i] = (Words)_mm512_maskz_permutexvar_epi16(
                0xaaaaaaaa, _mm512_load_si512(places + 32 * i), (__m512i)w);
#else
        uint16_t parts[32];
        std::memcpy(parts, &w, sizeof parts);
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 16; ++j)
                a[i][j] = static_cast<int32_t>(uint32_t{parts[16 * i + j]} << 16);
#endif
    }
    static K3_INLINE Sums row(const weight* p) { return Bf16::row(p); }
};

}  // namespace k3
