// One token of a feed-forward: dense, or routed experts in a latent space beside shared
// ones. See __AVX512BF16__ in lanes.h.
#include <cmath>

#include "decode.h"
#include "experts.h"
#include "rows.h"

namespace k3 {

namespace {

// The k largest of score + bias, ties to the lower index, and their weights.
void route(const float* logits, const float* bias, const Sizes& z, int64_t* index,
           float* weights) {
    float total = 0;
    for (int64_t a = 0; a < z.active; ++a) {
        int64_t best = -1;
        float most = 0;
        for (int64_t e = 0; e < z.E; ++e) {
            float value = logits[e] + bias[e];
            bool taken = false;
            for (int64_t i = 0; i < a; ++i) taken |= index[i] == e;
            if (!taken && (best < 0 || value > most)) best = e, most = value;
        }
        index[a] = best;
        weights[a] = logits[best];
        total += weights[a];
    }
    const float factor = static_cast<float>(z.scaling);
    for (int64_t a = 0; a < z.active; ++a)
        weights[a] = weights[a] / (total + 1e-20f) * factor;
}

// The parts that read the layer's input: gate and up of the dense or shared experts.
template <class T>
struct Shared {
    float *gate, *up;
    Shared(Pass& pass, const Layer& layer)
        : gate(pass.scratch.take<float>(pass.B() * layer.width)),
          up(pass.scratch.take<float>(pass.B() * layer.width)) {}
    void jobs(Pass& pass, const Layer& layer, const void* x, Job* two) {
        two[0] =
            dense<T>(layer.gate, layer.width, pass.z.D, x, pass.B(), gate, layer.width);
        two[1] =
            dense<T>(layer.up, layer.width, pass.z.D, x, pass.B(), up, layer.width);
    }
    Job down(Pass& pass, const Layer& layer, float* y) {
        const int64_t B = pass.B(), width = layer.width;
        for (int64_t b = 0; b < B; ++b)
            situ_row<T>(gate + b * width, up + b * width, width, pass.z.beta,
                        pass.z.linear_beta);
        auto* hidden = packed_rows<T>(pass.scratch, gate, width, B, width);
        return dense<T>(layer.down, pass.z.D, width, hidden, B, y, pass.z.D);
    }
};

}  // namespace

template <class T>
void mlp_layer(Pass& pass, const Layer& layer, const float* x, float* y) {
    auto* packed = packed_rows<T>(pass.scratch, x, pass.z.D, pass.B(), pass.z.D);
    Shared<T> dense_part(pass, layer);
    Job two[2];
    dense_part.jobs(pass, layer, packed, two);
    run_jobs<T>(two, 2, pass.run.threads);
    Job last = dense_part.down(pass, layer, y);
    run_jobs<T>(&last, 1, pass.run.threads);
}

template <class T>
void moe_layer(Pass& pass, const Layer& layer, const float* x, float* y) {
    using V = typename T::value;
    const Sizes& z = pass.z;
    const int64_t B = pass.B(), D = z.D, L = z.L;
    Scratch& s = pass.scratch;
    auto* packed = packed_rows<T>(s, x, D, B, D);
    auto* scores = s.take<float>(B * z.E);
    auto* latent = s.take<float>(B * L);
    Shared<T> shared(pass, layer);
    Job jobs[4] = {dense<T>(layer.router, z.E, D, packed, B, scores, z.E),
                   dense<T>(layer.latent_down, L, D, packed, B, latent, L)};
    jobs[0].rounds = false;
    shared.jobs(pass, layer, packed, jobs + 2);
    run_jobs<T>(jobs, 4, pass.run.threads);
    const int64_t before = pass.layer * B * z.active;
    auto* index = pass.run.index ? pass.run.index + before
                                 : s.take<int64_t>(B * z.active);
    auto* weights = pass.run.weights ? pass.run.weights + before
                                     : s.take<float>(B * z.active);
    over(B * z.E, [&](int64_t i, int64_t n) {
        store_n(scores + i, sigmoid(load_n(scores + i, n)), n);
    });
    for (int64_t b = 0; b < B; ++b)
        route(scores + b * z.E, layer.router_bias, z, index + b * z.active,
              weights + b * z.active);
    auto* mixed = s.take<float>(B * L);
    Experts experts{layer.w1, layer.w2, layer.w3, layer.s1, layer.s2,     layer.s3,
                    z.E,      L,        z.F,      z.beta,   z.linear_beta};
    run_experts<T>(s, experts, {B, z.active, index, weights}, latent, mixed,
                   pass.run.threads);
    T::round_row(mixed, B * L);
    auto* weight = static_cast<const V*>(layer.latent_norm);
    for (int64_t b = 0; b < B; ++b)
        norm_row<T>(mixed + b * L, weight, z.eps, L, mixed + b * L);
    auto* normed = packed_rows<T>(s, mixed, L, B, L);
    auto* routed = s.take<float>(B * D);
    Job last[2] = {dense<T>(layer.latent_up, D, L, normed, B, routed, D),
                   shared.down(pass, layer, y)};
    run_jobs<T>(last, 2, pass.run.threads);
    over(B * D, [&](int64_t i, int64_t n) {
        store_n(y + i, load_n(y + i, n) + load_n(routed + i, n), n);
    });
    T::round_row(y, B * D);
}

template void mlp_layer<Fp32>(Pass&, const Layer&, const float*, float*);
template void mlp_layer<Bf16>(Pass&, const Layer&, const float*, float*);
template void mlp_layer<Stored>(Pass&, const Layer&, const float*, float*);
template void moe_layer<Fp32>(Pass&, const Layer&, const float*, float*);
template void moe_layer<Bf16>(Pass&, const Layer&, const float*, float*);
template void moe_layer<Stored>(Pass&, const Layer&, const float*, float*);

}  // namespace k3
