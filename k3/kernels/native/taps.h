// The filters of a short convolution as vectors: a tap of many channels at once.
#pragma once
#include "lanes.h"

namespace k3 {

// Filters of n channels beside each other, `width` taps each: tap j of all of them.
struct Taps {
    const float* taps;
    int64_t width, n;
    vec at(int64_t j) const {
        float lanes[W] = {};
        for (int64_t i = 0; i < n; ++i) lanes[i] = taps[width * i + j];
        return load(lanes);
    }
};

// The four taps of W channels, in registers: through memory each would wait for
// sixteen stores.
struct FourTaps {
    vec tap[4];
    explicit FourTaps(const float* p) {
#if defined(__AVX512F__)
        const __m512 a = _mm512_loadu_ps(p), b = _mm512_loadu_ps(p + W);
        const __m512 c = _mm512_loadu_ps(p + 2 * W), d = _mm512_loadu_ps(p + 3 * W);
        for (int j = 0; j < 4; j += 2) {
            const __m512i two = _mm512_add_epi32(
                _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25,
                                  29),
                _mm512_set1_epi32(j));
            const __m512 low = _mm512_permutex2var_ps(a, two, b);
            const __m512 high = _mm512_permutex2var_ps(c, two, d);
            tap[j] = (vec)_mm512_shuffle_f32x4(low, high, 0x44);
            tap[j + 1] = (vec)_mm512_shuffle_f32x4(low, high, 0xee);
        }
#else
        for (int j = 0; j < 4; ++j) tap[j] = Taps{p, 4, W}.at(j);
#endif
    }
};

}  // namespace k3
