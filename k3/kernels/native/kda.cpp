// KDA over tokens whose inputs are all made: a head of a sequence at a time.
#include "api.h"
#include "kda_head.h"
#include "pool.h"

namespace {

using namespace k3;
using namespace k3::kda;

void run_head(const Call& call, int64_t sequence, int64_t start, int64_t h) {
    int64_t K = call.K, V = call.V, stride = call.H * V, tokens = call.lens[sequence];
    int64_t memory = (sequence * call.H + h) * V * K, at = start * stride + h * V;
    Tokens all{call.q.of(h), call.k.of(h), call.v.of(h), call.g.of(h), call.beta.of(h)};
    Tokens in = all.from(start);
    float *out = call.out + at, *errors = call.errors ? call.errors + at : nullptr;
    if (tokens <= FEW) {
        run_rows(in, call.state + memory, call.final + memory, out, errors, stride, tokens,
                 K, V);
        return;
    }
    Room room(Slabs::floats(K, V));
    Slabs slabs(room, call.state + memory, K, V);
    for (int64_t t = 0; t < tokens; t += BLOCK) {
        int64_t left = tokens - t, n = left < BLOCK ? left : BLOCK, by = t * stride;
        slabs.run(in.from(t), n, left, out + by, errors ? errors + by : nullptr, stride);
    }
    slabs.store(call.final + memory);
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
