// One head of a KDA layer from its projections on: convolution, SiLU, norms, gate.
#pragma once
#include <cmath>

#include "kda_head.h"

namespace k3::kda {

// Between the projections of a layer and its last one; Python packs the same fields. T
// is the trunk's type, fp32 or bf16; rows of tokens follow one another.
template <class T>
struct LayerCall {
    const T *q, *k, *v;     // [T H K] [T H K] [T H V], before the convolution
    const T *z, *b, *gate;  // [T H K] [T H] [T H V]
    const float *q_taps, *k_taps, *v_taps;  // [channels width]
    const T* window;                        // [S past C], C = H (2 K + V)
    const float *A_log, *dt_bias, *norm;    // [H] [H K] [V]
    const float* state;                     // [S H V K]
    float* final;                           // [S H V K]
    T *window_after, *out;                  // [S past C] [T H V]
    const int64_t* lens;                    // [S]
    int64_t S, H, K, V, past, threads;
    double lower_bound, eps;
    int64_t bounded;

    int64_t channels() const { return H * (2 * K + V); }
};

// Round to the trunk's type and back.
inline vec rounded(vec x, const float*) { return x; }
inline vec rounded(vec x, const bf16*) {
    bf16 lanes[W];
    store(lanes, x);
    return load(lanes);
}

// Some channels of one sequence: their raw rows, the window before them and the taps.
template <class T>
struct Channels {
    const T *raw, *window;
    T* after;
    int64_t n, token, past, row;  // token, row: from one to the next, raw and window
    float* taps;                  // [past + 1, padded n]

    void take(const float* weight) {
        for (int64_t j = 0; j <= past; ++j)
            for (int64_t i = 0; i < padded(n); ++i)
                taps[j * padded(n) + i] = i < n ? weight[i * (past + 1) + j] : 0.0f;
    }
    const T* at(int64_t t) const { return t < 0 ? window + (past + t) * row : raw + t * token; }

    // Eq. 2 at token t: silu of the last past + 1 inputs weighted, in the trunk's type.
    void convolve(int64_t t, float* y) const {
        over(n, [&](int64_t i, int64_t m) {
            vec x = {};
            for (int64_t j = 0; j <= past; ++j)
                x += load_n(at(t - past + j) + i, m) * load(taps + j * padded(n) + i);
            store(y + i, rounded(x * sigmoid(x), raw));
        });
    }
    // The window after so many tokens.
    void keep(int64_t tokens) const {
        for (int64_t j = 0; j < past; ++j)
            std::memcpy(after + j * row, at(tokens - past + j),
                        static_cast<size_t>(n) * sizeof(T));
    }
};

// x *= factor / sqrt(sum(x^2) + 1e-6), over padded rows whose ends are zeros.
inline void l2(float* x, int64_t n, float factor) {
    vec squares = {};
    for (int64_t i = 0; i < n; i += W) squares += load(x + i) * load(x + i);
    float scale = factor / std::sqrt(sum(squares) + 1e-6f);
    for (int64_t i = 0; i < n; i += W) store(x + i, load(x + i) * scale);
}

// Eq. 5: log-decay of one head.
template <class T>
inline void log_decay(const LayerCall<T>& c, int64_t h, const T* z, float* g) {
    float rate = std::exp(c.A_log[h]), bound = static_cast<float>(c.lower_bound);
    const float* bias = c.dt_bias + h * c.K;
    if (c.bounded) {
        over(c.K, [&](int64_t i, int64_t n) {
            vec x = (load_n(z + i, n) + load_n(bias + i, n)) * rate;
            store(g + i, sigmoid(x) * bound);
        });
        return;
    }
    for (int64_t i = 0; i < c.K; ++i) {
        float x = widen(z[i]) + bias[i];
        g[i] = -rate * (x > 20.0f ? x : std::log1p(std::exp(x)));
    }
}

// Eq. 6: norm * y / rms(y) * sigmoid(gate), in the trunk's type.
template <class T>
inline void open(const LayerCall<T>& c, const float* y, const T* gate, T* out) {
    vec squares = {};
    over(c.V, [&](int64_t i, int64_t n) {
        vec x = load_n(y + i, n);
        squares += x * x;
    });
    float mean = sum(squares) / static_cast<float>(c.V);
    float scale = 1.0f / std::sqrt(mean + static_cast<float>(c.eps));
    over(c.V, [&](int64_t i, int64_t n) {
        vec x = load_n(y + i, n) * scale * load_n(c.norm + i, n);
        store_n(out + i, x * sigmoid(load_n(gate + i, n)), n);
    });
}

}  // namespace k3::kda
