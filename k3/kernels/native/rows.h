// Elementwise parts of a layer over one row.
#pragma once
#include <cmath>

#include "lanes.h"

namespace k3 {

inline float dot_row(const float* x, const float* y, int64_t n) {
    vec s = {};
    over(n, [&](int64_t i, int64_t m) { s += load_n(x + i, m) * load_n(y + i, m); });
    return sum(s);
}

// x *= 1 / sqrt(sum(x^2) + eps) * factor
inline void l2_row(float* x, int64_t n, float factor) {
    float scale = factor / std::sqrt(dot_row(x, x, n) + 1e-6f);
    over(n, [&](int64_t i, int64_t m) { store_n(x + i, load_n(x + i, m) * scale, m); });
}

// A value as a quotient: some of them need one division together.
struct Quotient {
    vec above, below;
};

inline Quotient tanh_parts(vec x) {
    // Near 0 the quotient would lose its leading bits: an odd series there.
    vec size = x < 0.0f ? -x : x;
    vec e = exp_down(size * -2.0f), one = broadcast(1.0f);
    vec q = x * x;
    vec near = broadcast(-0.01005f);
    near = near * q + 0.0215926f;
    near = near * q - 0.05396825f;
    near = near * q + 0.13333333f;
    near = near * q - 0.33333333f;
    near = size + size * q * near;
    vec above = size < 0.35f ? near : 1.0f - e;
    return {x < 0.0f ? -above : above, size < 0.35f ? one : 1.0f + e};
}

inline vec tanh(vec x) {
    const Quotient y = tanh_parts(x);
    return y.above / y.below;
}

// beta tanh(g / beta) sigmoid(g) linear tanh(u / linear)
inline vec situ(vec g, vec u, float beta, float linear) {
    const Quotient a = tanh_parts(g * (1.0f / beta));
    const Quotient b = tanh_parts(u * (1.0f / linear));
    return a.above * b.above * (beta * linear) /
           (a.below * b.below * (1.0f + exp(-g)));
}

inline float sigmoid_of(float x) { return 1.0f / (1.0f + std::exp(-x)); }

}  // namespace k3
