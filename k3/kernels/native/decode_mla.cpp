// One token of an MLA layer: absorbed attention over latent rows, gated output.
// See __AVX512BF16__ in lanes.h.
#include <cmath>

#include "decode.h"
#include "pool.h"
#include "product.h"
#include "rows.h"

namespace k3 {

namespace {

void softmax(float* x, int64_t n, float scale) {
    float most = -INFINITY;
    for (int64_t i = 0; i < n; ++i) most = x[i] > most ? x[i] : most;
    vec all = {};
    over(n, [&](int64_t i, int64_t m) {
        vec e = exp((load_n(x + i, m) - most) * scale);
        store_n(x + i, e, m);
        all += load_n(x + i, m);
    });
    const float inverse = 1.0f / sum(all);
    over(n,
         [&](int64_t i, int64_t m) { store_n(x + i, load_n(x + i, m) * inverse, m); });
}

template <class T>
struct Attention {
    using V = typename T::value;
    Pass& pass;
    const Layer& layer;
    const Carried& carried;
    float *q, *latent, *out;  // [B H dim], [H B width] then [H B latent], [B H v]

    const V* matrix(int64_t h) const {
        const Sizes& z = pass.z;
        return static_cast<const V*>(layer.kv_b) + h * (z.nope + z.mla_v) * z.latent;
    }

    // Head h's queries move through kv_b: [latent | shared] of each sequence.
    void absorb(int64_t h) {
        const Sizes& z = pass.z;
        const int64_t B = pass.B(), dim = z.nope + z.rope, width = z.latent + z.rope;
        float* mine = latent + h * B * width;
        std::memset(mine, 0, B * width * sizeof(float));
        weighted<T>(matrix(h), z.nope, z.latent, q + h * dim, z.mla_heads * dim, B,
                    mine, width, z.latent);
        for (int64_t b = 0; b < B; ++b) {
            const float* shared = q + (b * z.mla_heads + h) * dim + z.nope;
            std::memcpy(mine + b * width + z.latent, shared, z.rope * sizeof(float));
        }
    }

    // Some heads of sequence b look at its rows; `out` of absorb takes what they read.
    void attend(int64_t b, int64_t first, int64_t heads, float* scores, V* packed,
                float* read) {
        const Sizes& z = pass.z;
        const int64_t B = pass.B(), width = z.latent + z.rope, S = pass.length(b) + 1;
        const V* rows =
            static_cast<const V*>(carried.rows) + pass.sequence(b) * carried.stride;
        pack_rows<T>(latent + (first * B + b) * width, B * width, heads, width, false,
                     packed);
        product<T>(rows, 0, S, width, packed, heads, scores, S);
        const float scale = 1.0f / std::sqrt(static_cast<float>(z.nope + z.rope));
        for (int64_t h = 0; h < heads; ++h) softmax(scores + h * S, S, scale);
        std::memset(read, 0, heads * z.latent * sizeof(float));
        weighted<T>(rows, S, width, scores, S, heads, read, z.latent, z.latent);
        for (int64_t h = 0; h < heads; ++h)
            std::memcpy(latent + ((first + h) * B + b) * width, read + h * z.latent,
                        z.latent * sizeof(float));
    }

    // Head h's values of what every sequence has read.
    void expand(int64_t h, V* packed) {
        const Sizes& z = pass.z;
        const int64_t B = pass.B(), width = z.latent + z.rope;
        pack_rows<T>(latent + h * B * width, width, B, z.latent, false, packed);
        product<T>(matrix(h) + z.nope * z.latent, 0, z.mla_v, z.latent, packed, B,
                   out + h * z.mla_v, z.mla_heads * z.mla_v);
    }
};

// Writes this token's row [normed latent | shared key] behind those of its sequence.
template <class T>
void append(Pass& pass, const Layer& layer, const Carried& carried, float* row) {
    using V = typename T::value;
    const Sizes& z = pass.z;
    const int64_t width = z.latent + z.rope;
    for (int64_t b = 0; b < pass.B(); ++b) {
        float* mine = row + b * width;
        norm_row<T>(mine, static_cast<const V*>(layer.kv_a_norm), z.lora_eps, z.latent,
                    mine);
        V* rows = static_cast<V*>(carried.rows) + pass.sequence(b) * carried.stride;
        T::pack(mine, rows + pass.length(b) * width, width);
    }
}

template <class T>
void attend_all(Pass& pass, Attention<T>& a) {
    using V = typename T::value;
    const Sizes& z = pass.z;
    const int64_t B = pass.B(), H = z.mla_heads, width = z.latent + z.rope;
    Scratch& s = pass.scratch;
    parallel(pass.run.threads, H, [&](int64_t h) { a.absorb(h); });
    T::round_row(a.latent, H * B * width);
    constexpr int64_t group = 4;
    const int64_t groups = (H + group - 1) / group;
    int64_t longest = 0;
    for (int64_t b = 0; b < B; ++b)
        if (pass.length(b) + 1 > longest) longest = pass.length(b) + 1;
    auto* scores = s.take<float>(B * H * longest);
    auto* packed = s.take<V>(B * groups * group * pitch<T>(width));
    auto* read = s.take<float>(B * H * z.latent);
    parallel(pass.run.threads, B * groups, [&](int64_t i) {
        const int64_t b = i / groups, first = i % groups * group;
        const int64_t heads = H - first < group ? H - first : group;
        a.attend(b, first, heads, scores + (b * H + first) * longest,
                 packed + i * group * pitch<T>(width),
                 read + (b * H + first) * z.latent);
    });
    T::round_row(a.latent, H * B * width);
    auto* again = s.take<V>(H * B * pitch<T>(z.latent));
    parallel(pass.run.threads, H,
             [&](int64_t h) { a.expand(h, again + h * B * pitch<T>(z.latent)); });
    T::round_row(a.out, B * H * z.mla_v);
}

}  // namespace

template <class T>
void mla_layer(Pass& pass, const Layer& layer, const Carried& carried, const float* x,
               float* y) {
    const Sizes& z = pass.z;
    const int64_t B = pass.B(), D = z.D, H = z.mla_heads, dim = z.nope + z.rope;
    const int64_t width = z.latent + z.rope, values = H * z.mla_v;
    Scratch& s = pass.scratch;
    auto* packed = packed_rows<T>(s, x, D, B, D);
    auto* low = s.take<float>(B * z.q_lora);
    auto* row = s.take<float>(B * width);
    auto* gate = s.take<float>(B * values);
    Job jobs[] = {
        dense<T>(layer.q_a, z.q_lora, D, packed, B, low, z.q_lora),
        dense<T>(layer.kv_a, width, D, packed, B, row, width),
        dense<T>(layer.g, values, D, packed, B, gate, values),
    };
    run_jobs<T>(jobs, 3, pass.run.threads);
    auto* weight = static_cast<const typename T::value*>(layer.q_a_norm);
    for (int64_t b = 0; b < B; ++b)
        norm_row<T>(low + b * z.q_lora, weight, z.lora_eps, z.q_lora,
                    low + b * z.q_lora);
    append<T>(pass, layer, carried, row);
    Attention<T> a{pass,
                   layer,
                   carried,
                   s.take<float>(B * H * dim),
                   s.take<float>(H * B * width),
                   s.take<float>(B * values)};
    auto* packed_low = packed_rows<T>(s, low, z.q_lora, B, z.q_lora);
    Job queries = dense<T>(layer.q_b, H * dim, z.q_lora, packed_low, B, a.q, H * dim);
    run_jobs<T>(&queries, 1, pass.run.threads);
    attend_all<T>(pass, a);
    over(B * values, [&](int64_t i, int64_t n) {
        store_n(a.out + i, load_n(a.out + i, n) * sigmoid(load_n(gate + i, n)), n);
    });
    T::round_row(a.out, B * values);
    auto* out = packed_rows<T>(s, a.out, values, B, values);
    Job last = dense<T>(layer.o, D, values, out, B, y, D);
    run_jobs<T>(&last, 1, pass.run.threads);
}

template void mla_layer<Fp32>(Pass&, const Layer&, const Carried&, const float*,
                              float*);
template void mla_layer<Bf16>(Pass&, const Layer&, const Carried&, const float*,
                              float*);

}  // namespace k3
