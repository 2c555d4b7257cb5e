// KDA over few tokens: the memory is read and written once, in its own layout [V K].
#pragma once
#include "kda.h"

namespace k3::kda {

constexpr int ROWS = 4;

struct Few {
    const float *a, *k, *q;  // [Kp] of one token
    float beta, own;
};

struct Stored {
    void operator()(float* p, vec x, int64_t n) const { store_n(p, x, n); }
};

// One token over R rows: reads `from`, writes `to` (which may be the same) by `put`.
template <int R, class Put = Stored>
inline void one_token(const Few& x, const float* from, float* to, int64_t K,
                      const float* v, float* out, float* errors, Put put = {}) {
    vec key[R] = {}, query[R] = {};
    over(K, [&](int64_t i, int64_t n) {
        vec a = load(x.a + i), k = load(x.k + i) * a, q = load(x.q + i) * a;
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            vec s = load_n(from + r * K + i, n);
            key[r] += s * k;
            query[r] += s * q;
        }
    });
    float e[R];
    for (int r = 0; r < R; ++r) {
        float error = v[r] - sum(key[r]);
        e[r] = error * x.beta;
        out[r] = sum(query[r]) + e[r] * x.own;
        if (errors) errors[r] = error;
    }
    over(K, [&](int64_t i, int64_t n) {
        vec a = load(x.a + i), k = load(x.k + i);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            vec s = load_n(from + r * K + i, n) * a + k * e[r];
            put(to + r * K + i, s, n);
        }
    });
}

template <int R>
inline void tokens_over_rows(const Few* few, int64_t tokens, const float* state,
                             float* final, int64_t K, Rows v, float* out,
                             float* errors, int64_t stride) {
    for (int64_t t = 0; t < tokens; ++t) {
        float* e = errors ? errors + t * stride : nullptr;
        one_token<R>(few[t], t ? final : state, final, K, v.at(t), out + t * stride, e);
    }
}

// Run a head's few tokens; out and errors (or null) have `stride` from token to token.
inline void run_rows(const Tokens& in, const float* state, float* final, float* out,
                     float* errors, int64_t stride, int64_t tokens, int64_t K,
                     int64_t V) {
    if (!tokens) {
        std::memcpy(final, state, static_cast<size_t>(V * K) * 4);
        return;
    }
    int64_t Kp = padded(K);
    Room room(3 * tokens * Kp + tokens * 16);
    auto* few = static_cast<Few*>(std::malloc(static_cast<size_t>(tokens) * sizeof(Few)));
    for (int64_t t = 0; t < tokens; ++t) {
        float *a = room.take(Kp), *k = room.take(Kp), *q = room.take(Kp);
        vec own = {};
        over(K, [&](int64_t i, int64_t n) {
            vec x = load_n(in.k.at(t) + i, n), y = load_n(in.q.at(t) + i, n);
            store(a + i, exp_down(load_n(in.g.at(t) + i, n)));
            store(k + i, x);
            store(q + i, y);
            own += x * y;
        });
        few[t] = {a, k, q, *in.beta.at(t), sum(own)};
    }
    int64_t r = 0;
    auto after = [](float* p, int64_t n) { return p ? p + n : nullptr; };
    for (; r + ROWS <= V; r += ROWS)
        tokens_over_rows<ROWS>(few, tokens, state + r * K, final + r * K, K,
                               {in.v.data + r, in.v.token}, out + r, after(errors, r),
                               stride);
    for (; r < V; ++r)
        tokens_over_rows<1>(few, tokens, state + r * K, final + r * K, K,
                            {in.v.data + r, in.v.token}, out + r, after(errors, r), stride);
    std::free(few);
}

}  // namespace k3::kda
