// KDA over many tokens: a head at a time, its memory in slabs.
#include <initializer_list>

#include "api.h"
#include "kda_rows.h"
#include "kda_sweep.h"
#include "pool.h"

namespace {

using namespace k3;
using namespace k3::kda;

constexpr int WIDE = 2;  // vectors in a slab: it fills half of a first cache of 32 KB
constexpr int64_t LANES = WIDE * W;

// Memory rows [lanes K] to a slab [K LANES] and back; lanes that are none hold zeros.
void load_slab(float* slab, const float* rows, int64_t K, int64_t lanes) {
    for (int64_t v = 0; v < LANES; ++v)
        for (int64_t i = 0; i < padded(K); ++i)
            slab[i * LANES + v] = v < lanes && i < K ? rows[v * K + i] : 0.0f;
}

void store_slab(const float* slab, float* rows, int64_t K, int64_t lanes) {
    for (int64_t v = 0; v < lanes; ++v)
        for (int64_t i = 0; i < K; ++i) rows[v * K + i] = slab[i * LANES + v];
}

// Rows of one head lie on pages of their own, where the processor does not look ahead.
void fetch(const Tokens& in, int64_t K, int64_t V) {
    for (int64_t i = 0; i < K; i += 16)
        for (const float* p : {in.q.at(0), in.k.at(0), in.g.at(0)})
            __builtin_prefetch(p + i);
    for (int64_t i = 0; i < V; i += 16) __builtin_prefetch(in.v.at(0) + i);
}

struct Head {
    Tokens in;
    const float* state;
    float *final, *out, *errors;
    int64_t tokens, stride;  // of out and errors, from token to token
};

void run_slabs(const Head& head, int64_t K, int64_t V) {
    int64_t slabs = (V + LANES - 1) / LANES, size = padded(K) * LANES;
    Room room(Folded::floats(K) + slabs * padded(K) * LANES);
    Folded folded(room, K);
    float* memory = room.take(slabs * size);
    auto lanes = [&](int64_t s) { return V - s * LANES < LANES ? V - s * LANES : LANES; };
    for (int64_t s = 0; s < slabs; ++s)
        load_slab(memory + s * size, head.state + s * LANES * K, K, lanes(s));
    for (int64_t t = 0; t < head.tokens; t += BLOCK) {
        int64_t n = head.tokens - t < BLOCK ? head.tokens - t : BLOCK;
        Tokens in = head.in.from(t);
        for (int64_t i = 0; i < n; ++i) {
            if (t + i + 4 < head.tokens) fetch(in.from(i + 4), K, V);
            fold(folded, i, in.q.at(i), in.k.at(i), in.g.at(i));
            folded.beta[i] = *in.beta.at(i);
        }
        for (int64_t s = 0; s < slabs; ++s) {
            int64_t at = t * head.stride + s * LANES;
            Lanes part{{in.v.data + s * LANES, in.v.token}, head.out + at,
                       head.errors ? head.errors + at : nullptr, lanes(s), head.stride};
            run_slab<WIDE>(memory + s * size, folded, n, part);
        }
    }
    for (int64_t s = 0; s < slabs; ++s)
        store_slab(memory + s * size, head.final + s * LANES * K, K, lanes(s));
}

// Below this many tokens the memory is not worth turning into slabs.
constexpr int64_t FEW = 8;

void run_head(const Call& call, int64_t sequence, int64_t start, int64_t h) {
    int64_t K = call.K, V = call.V, stride = call.H * V;
    int64_t memory = (sequence * call.H + h) * V * K, at = start * stride + h * V;
    Tokens all{call.q.of(h), call.k.of(h), call.v.of(h), call.g.of(h), call.beta.of(h)};
    Head head{all.from(start), call.state + memory, call.final + memory, call.out + at,
              call.errors ? call.errors + at : nullptr, call.lens[sequence], stride};
    if (head.tokens <= FEW)
        run_rows(head.in, head.state, head.final, head.out, head.errors, stride,
                 head.tokens, K, V);
    else run_slabs(head, K, V);
}

}  // namespace

K3_API void k3_kda(const Call* call) {
    int64_t total = 0;
    for (int64_t s = 0; s < call->S; ++s) total += call->lens[s] + 1;
    bool small = total * call->H * call->K * call->V < 100000;
    parallel(small ? 1 : call->threads, call->S * call->H, [&](int64_t task) {
        int64_t sequence = task / call->H, start = 0;
        for (int64_t s = 0; s < sequence; ++s) start += call->lens[s];
        run_head(*call, sequence, start, task % call->H);
    });
}
