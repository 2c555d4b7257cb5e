// The next tokens through a KDA layer: projections, convolution, gate, memory, gated
// output.
// See __AVX512BF16__ in lanes.h.
#include <atomic>
#include <cmath>
#include <vector>

#include "api.h"
#include "decode.h"
#include "kda_rows.h"
#include "pool.h"
#include "rows.h"
#include "taps.h"

namespace k3 {

namespace {

// Writes past the caches what is not read before the weights have emptied them.
struct Streamed {
    void operator()(float* p, vec x, int64_t) const {
#if defined(__AVX512F__)
        _mm512_stream_ps(p, (__m512)x);
#else
        store(p, x);
#endif
    }
};

// Memories of all layers from which on they leave the caches between two steps.
constexpr int64_t STREAMED_BYTES = 1 << 19;
// Floats from what is read to what is asked for, in the second cache: the processor
// foresees no next page, and the first cache has few misses under way.
constexpr int64_t AHEAD = 1536;

// The memory S [V K] of a head after one token, in `next`, which may be S; v, out [V].
// Streamed rows are whole cache lines; those that S has brought near are not streamed.
void update(const kda::Few& x, const float* v, const float* S, float* next, int64_t K,
            int64_t V, float* out, bool streams = false) {
    int64_t r = 0;
    auto rows = [&](auto put) {
        for (; r + kda::ROWS <= V; r += kda::ROWS) {
            for (int64_t i = 0; i < kda::ROWS * K; i += 16)
                __builtin_prefetch(S + r * K + AHEAD + i, 0, 2);
            kda::one_token<kda::ROWS>(x, S + r * K, next + r * K, K, v + r, out + r,
                                      nullptr, put);
        }
    };
    const bool whole = K % 16 == 0 && reinterpret_cast<uintptr_t>(next) % 64 == 0;
    if (streams && whole && S != next) rows(Streamed{});
    else rows(kda::Stored{});
    for (; r < V; ++r)
        kda::one_token<1>(x, S + r * K, next + r * K, K, v + r, out + r, nullptr);
}

template <class T>
struct Token {
    Pass& pass;
    const Layer& layer;
    const Carried& carried;
    float *raw, *z, *beta, *gate, *out;  // [B C] [B H K] [B H] [B H V] [B H V]

    int64_t channels() const { return pass.z.kda_heads * (2 * pass.z.K + pass.z.V); }

    // silu(sum of taps) of channels first .. first + n of row b.
    void convolve(int64_t b, int64_t first, int64_t n, const float* taps, float* y) {
        using Value = typename T::value;
        const int64_t past = pass.z.past, C = channels(), width = past + 1;
        const int64_t t = b % pass.run.tokens;
        auto* in = window(carried.window_in, b) + first;
        const float* now = raw + b * C + first;
        auto row = [&](int64_t j, int64_t i, int64_t m) {
            return t + j < past ? load_n(in + (t + j) * C + i, m)
                                : load_n(now + (j - past) * C + i, m);
        };
        over(n, [&](int64_t i, int64_t m) {
            vec x = {};
            if (width == 4 && m == W) {
                const FourTaps filter(taps + i * width);
                for (int j = 0; j < 4; ++j) x += filter.tap[j] * row(j, i, W);
            } else {
                const Taps filter{taps + i * width, width, m};
                for (int64_t j = 0; j < width; ++j) x += filter.at(j) * row(j, i, m);
            }
            store_n(y + i, x * sigmoid(x), m);
        });
        T::round_row(y, n);
        if (carried.kept_raw)
            T::pack(now, static_cast<Value*>(carried.kept_raw) + b * C + first, n);
    }

    bool last(int64_t b) const { return (b + 1) % pass.run.tokens == 0; }

    const typename T::value* window(const void* all, int64_t b) const {
        return static_cast<const typename T::value*>(all) +
               pass.sequence(b) * pass.z.past * channels();
    }

    // Leaves the last inputs of a sequence, which may be where those before them lie.
    void move_window(int64_t sequence) const {
        using Value = typename T::value;
        const int64_t past = pass.z.past, C = channels(), tokens = pass.run.tokens;
        const int64_t first = sequence * tokens;
        auto* in = window(carried.window_in, first);
        auto* out = const_cast<Value*>(window(carried.window_out, first));
        for (int64_t j = 0; j < past; ++j) {
            const int64_t t = tokens + j - past, old = tokens + j;
            if (t < 0) std::memcpy(out + j * C, in + old * C, C * sizeof(Value));
            else T::pack(raw + (first + t) * C, out + j * C, C);
        }
    }

    // Eq. 5 over one head: g = log of the decay.
    void log_decay(int64_t b, int64_t h, float* g) {
        const int64_t K = pass.z.K, H = pass.z.kda_heads;
        const float rate = std::exp(layer.A_log[h]);
        const float bound = static_cast<float>(pass.z.lower_bound);
        const float *x = z + (b * H + h) * K, *bias = layer.dt_bias + h * K;
        if (!pass.z.has_lower_bound) {
            for (int64_t i = 0; i < K; ++i) {
                float a = x[i] + bias[i];
                g[i] = -rate * (a > 20 ? a : std::log1p(std::exp(a)));
            }
            return;
        }
        over(K, [&](int64_t i, int64_t n) {
            vec a = (load_n(x + i, n) + load_n(bias + i, n)) * rate;
            store_n(g + i, sigmoid(a) * bound, n);
        });
    }

    // Asks for what the convolutions of a head look back on.
    void ask(int64_t b, int64_t h) const {
        const int64_t K = pass.z.K, V = pass.z.V, H = pass.z.kda_heads;
        auto* in = window(carried.window_in, b);
        for (int64_t j = 0; j < pass.z.past; ++j, in += channels()) {
            fetch(in + h * K, K);
            fetch(in + (H + h) * K, K);
            fetch(in + 2 * H * K + h * V, V);
        }
    }

    void run_head(int64_t b, int64_t h, float* mine) {
        const int64_t K = pass.z.K, V = pass.z.V, H = pass.z.kda_heads,
                      width = pass.z.past + 1;
        float *q = mine, *k = q + kda::padded(K), *g = k + kda::padded(K),
              *v = g + kda::padded(K);
        convolve(b, h * K, K, layer.q_conv + h * K * width, q);
        convolve(b, (H + h) * K, K, layer.k_conv + h * K * width, k);
        convolve(b, 2 * H * K + h * V, V, layer.v_conv + h * V * width, v);
        l2_row(q, K, 1);
        l2_row(k, K, 1);
        const float scale = 1.0f / std::sqrt(static_cast<float>(K));
        for (int64_t i = 0; i < K; ++i) q[i] *= scale;
        log_decay(b, h, g);
        const int64_t at = b * H + h;
        const float strength = sigmoid_of(beta[at]);
        keep(at, k, v, g, strength);
        over(K,
             [&](int64_t i, int64_t n) { store_n(g + i, exp(load_n(g + i, n)), n); });
        float* y = out + at * V;
        const int64_t memory = (pass.sequence(b) * H + h) * V * K;
        float* next = carried.state_out + memory;
        const bool first = b % pass.run.tokens == 0;
        const int64_t bytes = 4 * pass.run.batch * pass.kda_layers * H * V * K;
        update({g, k, q, strength, dot_row(q, k, K)}, v,
               first ? carried.state_in + memory : next, next, K, V, y,
               last(b) && bytes >= STREAMED_BYTES);
        const float eps = static_cast<float>(pass.z.eps);
        const float rms =
            1.0f / std::sqrt(dot_row(y, y, V) / static_cast<float>(V) + eps);
        const float* opened = gate + at * V;
        over(V, [&](int64_t i, int64_t n) {
            vec normed = load_n(y + i, n) * rms * load_n(layer.o_norm + i, n);
            store_n(y + i, normed * sigmoid(load_n(opened + i, n)), n);
        });
    }

    void keep(int64_t at, const float* k, const float* v, const float* g,
              float strength) {
        if (!carried.kept_raw) return;
        const int64_t K = pass.z.K, V = pass.z.V;
        std::memcpy(carried.kept_k + at * K, k, K * sizeof(float));
        std::memcpy(carried.kept_v + at * V, v, V * sizeof(float));
        std::memcpy(carried.kept_g + at * K, g, K * sizeof(float));
        carried.kept_beta[at] = strength;
    }
};

}  // namespace

template <class T>
void kda_layer(Pass& pass, const Layer& layer, const Carried& carried, const float* x,
               float* y) {
    const Sizes& z = pass.z;
    const int64_t B = pass.B(), D = z.D, H = z.kda_heads, keys = H * z.K,
                  values = H * z.V;
    const int64_t C = 2 * keys + values;
    Scratch& s = pass.scratch;
    auto* packed = packed_rows<T>(s, x, D, B, D);
    Token<typename T::trunk> token{pass,
                                   layer,
                                   carried,
                                   s.take<float>(B * C),
                                   s.take<float>(B * keys),
                                   s.take<float>(B * H),
                                   s.take<float>(B * values),
                                   s.take<float>(B * values)};
    auto* low = s.take<float>(B * z.K);
    Job jobs[] = {
        dense<T>(layer.q, keys, D, packed, B, token.raw, C),
        dense<T>(layer.k, keys, D, packed, B, token.raw + keys, C),
        dense<T>(layer.v, values, D, packed, B, token.raw + 2 * keys, C),
        dense<T>(layer.g, values, D, packed, B, token.gate, values),
        dense<T>(layer.f_a, z.K, D, packed, B, low, z.K),
        dense<T>(layer.b, H, D, packed, B, token.beta, H),
    };
    run_jobs<T>(jobs, 6, pass.run.threads);
    auto* packed_low = packed_rows<T>(s, low, z.K, B, z.K);
    Job gate = dense<T>(layer.f_b, keys, z.K, packed_low, B, token.z, keys);
    run_jobs<T>(&gate, 1, pass.run.threads);
    const int64_t own = 3 * kda::padded(z.K) + kda::padded(z.V);
    const int64_t tokens = pass.run.tokens;
    auto* mine = s.take<float>(pass.run.batch * H * own);
    // Behind a row of q, k or g there are zeros up to a whole vector.
    std::memset(mine, 0, pass.run.batch * H * own * sizeof(float));
    parallel(pass.run.threads, pass.run.batch * H, [&](int64_t i) {
        if (i + 1 < pass.run.batch * H) token.ask((i + 1) / H * tokens, (i + 1) % H);
        for (int64_t t = 0; t < tokens; ++t)
            token.run_head(i / H * tokens + t, i % H, mine + i * own);
        // Streamed rows reach other threads in order only behind a fence.
        if (pass.run.threads > 1) std::atomic_thread_fence(std::memory_order_seq_cst);
    });
    for (int64_t b = 0; b < pass.run.batch; ++b) token.move_window(b);
    T::round_row(token.out, B * values);
    auto* out = packed_rows<T>(s, token.out, values, B, values);
    Job last = dense<T>(layer.o, D, values, out, B, y, D);
    run_jobs<T>(&last, 1, pass.run.threads);
}

template void kda_layer<Fp32>(Pass&, const Layer&, const Carried&, const float*,
                              float*);
template void kda_layer<Bf16>(Pass&, const Layer&, const Carried&, const float*,
                              float*);
template void kda_layer<Stored>(Pass&, const Layer&, const Carried&, const float*,
                                float*);

// The memory of one head after `count` kept tokens, H of each tensor a token apart.
static void replay_head(const float* base, float* out, const float* k, const float* v,
                        const float* g, const float* beta, int64_t count, int64_t H,
                        int64_t K, int64_t V) {
    const int64_t Kp = kda::padded(K);
    std::vector<float> decay(Kp), key(Kp), read(V);
    if (!count) std::memcpy(out, base, V * K * sizeof(float));
    for (int64_t t = 0; t < count; ++t) {
        const float* row = g + t * H * K;
        over(K, [&](int64_t i, int64_t n) {
            store_n(decay.data() + i, exp(load_n(row + i, n)), n);
        });
        std::memcpy(key.data(), k + t * H * K, K * sizeof(float));
        // Nothing is read of it: the key stands for a query.
        update({decay.data(), key.data(), key.data(), beta[t * H], 0}, v + t * H * V,
               t ? out : base, out, K, V, read.data());
    }
}

}  // namespace k3

// out [B H V K]: memories `base` after the first counts[b] of m kept tokens of row b,
// bit for bit as the decode step has made them. k, g [B m H K], v [B m H V], beta
// [B m H].
K3_API void k3_kda_replay(const float* base, float* out, const float* k, const float* v,
                          const float* g, const float* beta, const int64_t* counts,
                          int64_t B, int64_t m, int64_t H, int64_t K, int64_t V,
                          int64_t threads) {
    k3::parallel(threads, B * H, [&](int64_t i) {
        const int64_t b = i / H, h = i % H, at = b * m * H + h;
        k3::replay_head(base + i * V * K, out + i * V * K, k + at * K, v + at * V,
                        g + at * K, beta + at, counts[b], H, K, V);
    });
}
