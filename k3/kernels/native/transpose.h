// A square of vectors turned over its diagonal.
#pragma once
#include "simd.h"

namespace k3 {

// Lanes of a and b in turn, from the lower and from the upper half of both.
inline vec turns_low(vec a, vec b) {
#if defined(__AVX512F__)
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                                   23);
#elif defined(__AVX2__)
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
inline vec turns_high(vec a, vec b) {
#if defined(__AVX512F__)
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,
                                   30, 15, 31);
#elif defined(__AVX2__)
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

// Each round moves the first bit of (row, lane) to the end: after log2 W rounds row and
// lane have changed places.
inline void transpose(vec* x) {
    for (int round = 1; round < W; round *= 2) {
        vec y[W];
#pragma GCC unroll 8
        for (int i = 0; i < W / 2; ++i) {
            y[2 * i] = turns_low(x[i], x[i + W / 2]);
            y[2 * i + 1] = turns_high(x[i], x[i + W / 2]);
        }
        for (int i = 0; i < W; ++i) x[i] = y[i];
    }
}

}  // namespace k3
