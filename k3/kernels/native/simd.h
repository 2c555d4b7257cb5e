// Vectors of the width that the level has, written once with the compiler's own vector
// types: a * b + c is one fused instruction where there is one. No intrinsics here.
#pragma once
#include <cstdint>
#include <cstring>

namespace k3 {

#if defined(__AVX512F__)
constexpr int W = 16;
#elif defined(__AVX2__)
constexpr int W = 8;
#else
constexpr int W = 4;
#endif

using bf16 = uint16_t;
typedef float vec __attribute__((vector_size(4 * W)));
typedef int32_t ivec __attribute__((vector_size(4 * W)));
typedef uint32_t uvec __attribute__((vector_size(4 * W)));
typedef uint16_t hvec __attribute__((vector_size(2 * W)));

inline float widen(float x) { return x; }
inline float widen(bf16 x) {
    uint32_t bits = static_cast<uint32_t>(x) << 16;
    float y;
    std::memcpy(&y, &bits, 4);
    return y;
}

inline vec broadcast(float x) { return x - vec{}; }

inline vec load(const float* p) {
    vec x;
    std::memcpy(&x, p, sizeof x);
    return x;
}
inline vec load(const bf16* p) {
    hvec h;
    std::memcpy(&h, p, sizeof h);
    return (vec)(__builtin_convertvector(h, uvec) << 16);
}

inline void store(float* p, vec x) { std::memcpy(p, &x, sizeof x); }
// Rounds to nearest, ties to even; NaN stays NaN.
inline void store(bf16* p, vec x) {
    uvec u = (uvec)x;
    uvec rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    uvec nan = (uvec)(x != x);
    hvec h = __builtin_convertvector((rounded & ~nan) | (nan & 0x7fc0u), hvec);
    std::memcpy(p, &h, sizeof h);
}

// The first n lanes, n < W; the others are 0 and their memory is not touched.
template <class T>
inline vec load_part(const T* p, int64_t n) {
    T lanes[W] = {};
    std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(T));
    return load(lanes);
}
template <class T>
inline void store_part(T* p, vec x, int64_t n) {
    T lanes[W];
    store(lanes, x);
    std::memcpy(p, lanes, static_cast<size_t>(n) * sizeof(T));
}

inline float sum(vec x) {
#if defined(__AVX512F__)
    x += __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15);
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#elif defined(__AVX2__)
    x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 4, 5, 6, 7);
#else
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1);
#endif
    return x[0] + x[1];
}

// Calls f(i, n) over a row in vectors: n == W but for the last, shorter one.
template <class F>
inline void over(int64_t size, F&& f) {
    int64_t i = 0;
    for (; i + W <= size; i += W) f(i, W);
    if (i < size) f(i, size - i);
}
template <class T>
inline vec load_n(const T* p, int64_t n) { return n == W ? load(p) : load_part(p, n); }
template <class T>
inline void store_n(T* p, vec x, int64_t n) {
    if (n == W) store(p, x);
    else store_part(p, x, n);
}

inline bool all(ivec mask) {
    return sum(__builtin_convertvector(mask, vec)) == -static_cast<float>(W);
}

// e^x for |x| within the range of normal numbers: relative error below 2e-7.
inline vec exp_inside(vec x) {
    // Adding 1.5 * 2^23 rounds to an integer n, which then stands in the last bits.
    vec shifted = x * 1.44269504088896341f + 12582912.0f;
    vec n = shifted - 12582912.0f;
    vec r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vec p = broadcast(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * r) * r + (r + 1.0f);
    return (vec)((ivec)p + ((ivec)shifted << 23));
}

// e^x: 0 below -87.3 (no denormals), +inf above 88, NaN where x is.
inline vec exp(vec x) {
    vec low = broadcast(-87.3f), high = broadcast(88.0f), none = {};
    vec y = x < low ? low : x;
    y = y > high ? high : y;
    vec e = exp_inside(y);
    e = x < low ? none : e;
    e = x > high ? broadcast(__builtin_inff()) : e;
    return x == x ? e : x;
}

// e^x for x <= 0: what `exp` says there, and NaN where x is.
inline vec exp_down(vec x) {
    vec low = broadcast(-87.3f), none = {};
    vec e = exp_inside(x < low ? low : x);
    return x < low ? none : e;
}

inline vec sigmoid(vec x) { return 1.0f / (1.0f + exp(-x)); }

}  // namespace k3
