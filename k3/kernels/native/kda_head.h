// One head's memory over many tokens, in slabs; or over few, in its own layout.
#pragma once
#include "kda_rows.h"
#include "kda_sweep.h"
#include "transpose.h"

namespace k3::kda {

constexpr int WIDE = 2;  // vectors in a slab: it fills half of a first cache of 32 KB
constexpr int64_t LANES = WIDE * W;

// Below this many tokens the memory is not worth turning into slabs.
constexpr int64_t FEW = 8;

// Rows of one head lie on pages of their own, where the processor does not look ahead.
template <class T>
inline void fetch(const T* row, int64_t n) {
    for (int64_t i = 0; i < n; i += static_cast<int64_t>(64 / sizeof(T)))
        __builtin_prefetch(row + i);
}

inline void fetch(const Tokens& in, int64_t K, int64_t V) {
    fetch(in.q.at(0), K);
    fetch(in.k.at(0), K);
    fetch(in.g.at(0), K);
    fetch(in.v.at(0), V);
}

// A head's memory as slabs [K LANES]; lanes that are none hold zeros.
class Slabs {
  public:
    static int64_t floats(int64_t K, int64_t V) {
        return Folded::floats(K) + (V + LANES - 1) / LANES * padded(K) * LANES;
    }

    Slabs(Room& room, const float* state, int64_t K, int64_t V)
        : K_(K), V_(V), size_(padded(K) * LANES), folded_(room, K),
          data_(room.take((V + LANES - 1) / LANES * size_)) {
        turn([&](float* rows, int64_t value, int64_t key, int64_t, int64_t m) {
            vec x[W];
            for (int64_t r = 0; r < W; ++r)
                x[r] = value + r < V ? load_n(state + (value + r) * K + key, m) : vec{};
            transpose(x);
            for (int64_t r = 0; r < W; ++r) k3::store(rows + r * LANES, x[r]);
        });
    }

    void store(float* final) const {
        turn([&](const float* rows, int64_t value, int64_t key, int64_t n, int64_t m) {
            vec x[W];
            for (int64_t r = 0; r < W; ++r) x[r] = load(rows + r * LANES);
            transpose(x);
            for (int64_t r = 0; r < n; ++r)
                store_n(final + (value + r) * K_ + key, x[r], m);
        });
    }

    // Run the first n of `total` tokens, n at most BLOCK; out and errors (or null) have
    // `stride` from token to token.
    void run(const Tokens& in, int64_t n, int64_t total, float* out, float* errors,
             int64_t stride) {
        for (int64_t t = 0; t < n; ++t) {
            if (t + 4 < total) fetch(in.from(t + 4), K_, V_);
            fold(folded_, t, in.q.at(t), in.k.at(t), in.g.at(t));
            folded_.beta[t] = *in.beta.at(t);
        }
        for (int64_t s = 0; s * LANES < V_; ++s) {
            int64_t at = s * LANES;
            Lanes part{{in.v.data + at, in.v.token}, out + at,
                       errors ? errors + at : nullptr, lanes(s), stride};
            run_slab<WIDE>(slab(s), folded_, n, part);
        }
    }

  private:
    // Calls f(rows, value, key, n, m) for every square of W keys by W values: `rows` lie
    // LANES apart in a slab; n values and m keys of the square are real.
    template <class F>
    void turn(F&& f) const {
        for (int64_t s = 0; s * LANES < V_; ++s)
            for (int64_t v = 0; v < LANES; v += W)
                for (int64_t i = 0; i < padded(K_); i += W) {
                    int64_t values = lanes(s) - v, keys = K_ - i;
                    f(slab(s) + i * LANES + v, s * LANES + v, i, values < W ? values : W,
                      keys < W ? keys : W);
                }
    }
    int64_t lanes(int64_t s) const {
        int64_t left = V_ - s * LANES;
        return left < LANES ? left : LANES;
    }
    float* slab(int64_t s) const { return data_ + s * size_; }

    int64_t K_, V_, size_;
    Folded folded_;
    float* data_;
};

}  // namespace k3::kda
