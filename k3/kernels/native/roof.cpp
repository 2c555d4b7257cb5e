// The processor's own limits, for benchmarks: fused products from registers, reading.
#include "api.h"
#include "pool.h"
#include "simd.h"

namespace {

using namespace k3;

// 12 chains hide the latency of a fused product; 24 W operations a round.
float products(int64_t rounds) {
    vec a[12];
    for (int i = 0; i < 12; ++i) a[i] = broadcast(static_cast<float>(i));
    vec b = broadcast(0.9f), c = broadcast(0.5f);
    for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
        for (int i = 0; i < 12; ++i) a[i] = a[i] * b + c;
    }
    vec all = {};
    for (int i = 0; i < 12; ++i) all += a[i];
    return sum(all);
}

float reading(const float* p, int64_t n) {
    vec a[8] = {};
    for (int64_t i = 0; i + 8 * W <= n; i += 8 * W)
        for (int j = 0; j < 8; ++j) a[j] += load(p + i + j * W);
    vec all = {};
    for (int j = 0; j < 8; ++j) all += a[j];
    return sum(all);
}

}  // namespace

// Every thread runs `rounds` rounds; returns the operations of all in out[0].
K3_API void k3_roof_products(int64_t rounds, double* out, int64_t threads) {
    float sums[256] = {};
    parallel(threads, threads, [&](int64_t i) { sums[i % 256] += products(rounds); });
    out[0] = static_cast<double>(threads * rounds) * 24 * W;
    out[1] = static_cast<double>(sums[0]);
}

// Reads n floats once, in parts of 1 MB.
K3_API void k3_roof_read(const float* p, int64_t n, double* out, int64_t threads) {
    constexpr int64_t part = 262144;
    float sums[256] = {};
    parallel(threads, (n + part - 1) / part, [&](int64_t i) {
        int64_t left = n - i * part;
        sums[i % 256] += reading(p + i * part, left < part ? left : part);
    });
    out[0] = static_cast<double>(sums[0]);
}
