// The decode step: embedding, layers over depth, final retrieval, head. Matches
// model.Model.step; values are rounded where that path stores them.
// See __AVX512BF16__ in lanes.h.
#include "decode.h"

#include <cmath>
#include <initializer_list>
#include <vector>

#include "api.h"
#include "rows.h"

namespace k3 {

template <class T>
void norm_row(const float* x, const typename T::value* weight, double eps, int64_t D,
              float* out) {
    float scale = 1.0f / std::sqrt(dot_row(x, x, D) / static_cast<float>(D) +
                                   static_cast<float>(eps));
    over(D,
         [&](int64_t i, int64_t n) { store_n(out + i, load_n(x + i, n) * scale, n); });
    T::round_row(out, D);
    over(D, [&](int64_t i, int64_t n) {
        store_n(out + i, load_n(out + i, n) * load_n(weight + i, n), n);
    });
    T::round_row(out, D);
}

template <class T>
void situ_row(float* gate, const float* up, int64_t n, double beta,
              double linear_beta) {
    float b = static_cast<float>(beta), l = static_cast<float>(linear_beta);
    over(n, [&](int64_t i, int64_t m) {
        store_n(gate + i, situ(load_n(gate + i, m), load_n(up + i, m), b, l), m);
    });
    T::round_row(gate, n);
}

namespace {

// Eq. 8-10 for B tokens: completed blocks [S B D], their inverse RMS [S B], the sum.
template <class T>
struct Depth {
    Pass& pass;
    float *blocks, *scale, *prefix;
    int64_t count = 0;
    bool running = true;

    int64_t size() const { return pass.B() * pass.z.D; }

    void tell() const {
        if (!pass.run.sums) return;
        auto* out = static_cast<typename T::value*>(pass.run.sums);
        T::pack(prefix, out + pass.layer * size(), size());
    }

    void commit() {
        const int64_t B = pass.B(), D = pass.z.D;
        std::memcpy(blocks + count * size(), prefix, size() * sizeof(float));
        for (int64_t b = 0; b < B; ++b) scale[count * B + b] = inverse(prefix + b * D);
        ++count;
        running = false;
    }

    void add(const float* y) {
        if (!running) std::memcpy(prefix, y, size() * sizeof(float));
        else
            over(size(), [&](int64_t i, int64_t n) {
                store_n(prefix + i, load_n(prefix + i, n) + load_n(y + i, n), n);
            });
        T::round_row(prefix, size());
        running = true;
    }

    float inverse(const float* x) const {
        const float D = static_cast<float>(pass.z.D);
        return 1.0f /
               std::sqrt(dot_row(x, x, pass.z.D) / D + static_cast<float>(pass.z.eps));
    }

    void retrieve(const void* norm, const void* proj, float* out) {
        if (!count) {
            std::memcpy(out, prefix, size() * sizeof(float));
            return;
        }
        const int64_t D = pass.z.D;
        int64_t mark = pass.scratch.mark();
        float* query = pass.scratch.take<float>(D);
        auto* a = static_cast<const typename T::value*>(norm);
        auto* b = static_cast<const typename T::value*>(proj);
        over(D, [&](int64_t i, int64_t n) {
            store_n(query + i, load_n(a + i, n) * load_n(b + i, n), n);
        });
        for (int64_t row = 0; row < pass.B(); ++row) mix(row, query, out + row * D);
        pass.scratch.back(mark);
    }

    void mix(int64_t b, const float* query, float* out) {
        const int64_t D = pass.z.D, sources = count + running;
        float p[256], most = -INFINITY, all = 0;
        for (int64_t s = 0; s < sources; ++s) {
            const float* x = source(s, b);
            float rms = s < count ? scale[s * pass.B() + b] : inverse(x);
            p[s] = dot_row(x, query, D) * rms;
            most = p[s] > most ? p[s] : most;
        }
        for (int64_t s = 0; s < sources; ++s) all += p[s] = std::exp(p[s] - most);
        over(D, [&](int64_t i, int64_t n) {
            vec y = {};
            for (int64_t s = 0; s < sources; ++s)
                y += load_n(source(s, b) + i, n) * (p[s] / all);
            store_n(out + i, y, n);
        });
        T::round_row(out, D);
    }

    const float* source(int64_t s, int64_t b) const {
        const float* base = s < count ? blocks + s * size() : prefix;
        return base + b * pass.z.D;
    }
};

template <class T>
void norm_rows(Pass& pass, const float* x, const void* weight, float* out) {
    const int64_t D = pass.z.D;
    auto* w = static_cast<const typename T::value*>(weight);
    for (int64_t b = 0; b < pass.B(); ++b)
        norm_row<T>(x + b * D, w, pass.z.eps, D, out + b * D);
}

template <class T>
void fetch_rows(int64_t D, std::initializer_list<const void*> rows) {
    for (const void* row : rows) fetch(static_cast<const typename T::value*>(row), D);
}

template <class T>
void run_layer(Pass& pass, Depth<typename T::trunk>& depth, const Layer& layer,
               const Carried& carried, float* h, float* y) {
    fetch_rows<T>(pass.z.D,
                  {layer.attn_res_norm, layer.attn_res_proj, layer.input_norm});
    depth.retrieve(layer.attn_res_norm, layer.attn_res_proj, h);
    if (layer.starts_block) depth.commit();
    norm_rows<T>(pass, h, layer.input_norm, h);
    int64_t mark = pass.scratch.mark();
    if (layer.is_mla) mla_layer<T>(pass, layer, carried, h, y);
    else kda_layer<T>(pass, layer, carried, h, y);
    pass.scratch.back(mark);
    fetch_rows<T>(pass.z.D,
                  {layer.mlp_res_norm, layer.mlp_res_proj, layer.post_norm});
    depth.add(y);
    depth.retrieve(layer.mlp_res_norm, layer.mlp_res_proj, h);
    norm_rows<T>(pass, h, layer.post_norm, h);
    if (layer.is_moe) moe_layer<T>(pass, layer, h, y);
    else mlp_layer<T>(pass, layer, h, y);
    pass.scratch.back(mark);
    depth.add(y);
    depth.tell();
}

// An upper bound of what a pass takes at once.
int64_t room(const Sizes& z, const Run& run) {
    int64_t B = run.batch * run.tokens, longest = 0;
    for (int64_t b = 0; b < run.batch; ++b)
        longest = run.lens[b] > longest ? run.lens[b] : longest;
    int64_t kda = z.kda_heads * (8 * z.K + 6 * z.V + 64) + z.K;
    int64_t mla = z.mla_heads * (3 * (z.nope + z.rope) + 4 * z.latent + 3 * z.rope +
                                 4 * z.mla_v + 128) +
                  4 * z.q_lora + 4 * z.latent + mla_room(z, longest + run.tokens);
    int64_t moe = z.E + 4 * z.L + z.active * (4 * z.L + 6 * z.F + 16);
    int64_t wide = 0;  // dense feed-forward: bounded by the caller's widest layer
    int64_t depth = (z.layers + 6) * z.D;
    return (B * (kda + mla + moe + wide + depth + 8 * z.D) + 65536) * 4;
}

// Where each KDA layer is to leave its memory and window.
template <class T>
void place(const Model& model, const Run& run) {
    const Sizes& z = *model.sizes;
    const int64_t H = z.kda_heads, C = H * (2 * z.K + z.V);
    float* state = run.states;
    auto* window = static_cast<typename T::value*>(run.windows);
    for (int64_t i = 0; i < z.layers; ++i) {
        if (model.layers[i].is_mla) continue;
        run.carried[i].state_out = state;
        run.carried[i].window_out = window;
        state += run.batch * H * z.V * z.K;
        window += run.batch * z.past * C;
    }
}

bool known(const Sizes& z, const Run& run) {
    for (int64_t i = 0; i < run.batch * run.tokens; ++i)
        if (run.ids[i] < 0 || run.ids[i] >= z.vocab) return false;
    return true;
}

template <class T>
void step(const Model& model, const Run& run) {
    using Embedded = typename T::weight;
    const Sizes& z = *model.sizes;
    place<T>(model, run);
    static thread_local Scratch scratch;
    int64_t widest = 0;
    for (int64_t i = 0; i < z.layers; ++i)
        if (model.layers[i].width > widest) widest = model.layers[i].width;
    Pass pass{z, run, scratch};
    for (int64_t i = 0; i < z.layers; ++i) pass.kda_layers += !model.layers[i].is_mla;
    const int64_t B = pass.B(), D = z.D;
    scratch.reserve(room(z, run) + B * widest * 16);
    auto* blocks = scratch.take<float>((z.layers + 1) * B * D);
    auto* scale = scratch.take<float>((z.layers + 1) * B);
    auto* prefix = scratch.take<float>(B * D);
    auto* h = scratch.take<float>(B * D);
    auto* y = scratch.take<float>(B * D);
    for (int64_t b = 0; b < B; ++b)
        for (int64_t i = 0; i < D; ++i)
            prefix[b * D + i] =
                widen(static_cast<const Embedded*>(model.embed)[run.ids[b] * D + i]);
    Depth<typename T::trunk> depth{pass, blocks, scale, prefix};
    for (; pass.layer < z.layers; ++pass.layer)
        run_layer<T>(pass, depth, model.layers[pass.layer], run.carried[pass.layer], h,
                     y);
    depth.retrieve(model.output_res_norm, model.output_res_proj, h);
    norm_rows<T>(pass, h, model.norm, h);
    auto* x = packed_rows<T>(scratch, h, D, B, D);
    Job head = dense<T>(model.head, z.vocab, D, x, B, run.logits, z.vocab);
    run_jobs<T>(&head, 1, run.threads);
    for (int64_t i = 0; i < z.layers; ++i) {
        run.carried[i].state_in = run.carried[i].state_out;
        run.carried[i].window_in = run.carried[i].window_out;
    }
}

}  // namespace

#define K3_FOR(T)                                                                      \
    template void norm_row<T>(const float*, const T::value*, double, int64_t, float*); \
    template void situ_row<T>(float*, const float*, int64_t, double, double);
K3_FOR(Fp32)
K3_FOR(Bf16)
K3_FOR(Stored)

}  // namespace k3

// The next tokens of every sequence: logits [rows vocab] and the carried state. The
// trunk is fp32, bf16 (1), or fp32 with matrices in bf16 (2).
K3_API void k3_decode_step(const void* model, void* run, int64_t trunk) {
    auto& m = *static_cast<const k3::Model*>(model);
    auto& r = *static_cast<k3::Run*>(run);
    r.refused = !k3::known(*m.sizes, r);
    if (r.refused) return;
    if (trunk == 1) k3::step<k3::Bf16>(m, r);
    else if (trunk == 2) k3::step<k3::Stored>(m, r);
    else k3::step<k3::Fp32>(m, r);
}

// Bytes of Sizes, Layer, Carried, Model and Run, for a test of their twins in Python.
K3_API void k3_decode_bytes(int64_t* bytes) {
    const int64_t sizes[] = {sizeof(k3::Sizes), sizeof(k3::Layer), sizeof(k3::Carried),
                             sizeof(k3::Model), sizeof(k3::Run)};
    std::memcpy(bytes, sizes, sizeof sizes);
}
