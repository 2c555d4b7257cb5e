// RMSNorm, as kernels/norm.py: x / sqrt(mean(x^2) + eps), rounded to x's dtype, times
// the weight.
#include <cmath>

#include "api.h"
#include "pool.h"
#include "simd.h"

namespace {

using namespace k3;

// x as X, the weight as V, out as O, which is the wider of the two.
template <class X, class V, class O>
void row(const X* x, const V* weight, float eps, int64_t D, O* out) {
    vec squares = {};
    over(D, [&](int64_t i, int64_t n) {
        vec v = load_n(x + i, n);
        squares += v * v;
    });
    float scale = 1.0f / std::sqrt(sum(squares) / static_cast<float>(D) + eps);
    over(D, [&](int64_t i, int64_t n) {
        X rounded[W];
        store(rounded, load_n(x + i, n) * scale);
        store_n(out + i, load(rounded) * load_n(weight + i, n), n);
    });
}

struct Call {
    const void *x, *weight;
    float eps;
    int64_t R, D;
    void* out;
    int64_t threads;
};

template <class X, class V, class O>
void rows(const Call& c) {
    constexpr int64_t block = 32;
    const bool small = c.R * c.D < 16384;
    parallel(small ? 1 : c.threads, (c.R + block - 1) / block, [&](int64_t b) {
        for (int64_t r = b * block; r < c.R && r < (b + 1) * block; ++r)
            row(static_cast<const X*>(c.x) + r * c.D, static_cast<const V*>(c.weight),
                c.eps, c.D, static_cast<O*>(c.out) + r * c.D);
    });
}

}  // namespace

// out [R D] of x [R D] and weight [D], each fp32 or bf16: the wider of the two.
K3_API void k3_rms_norm(const void* x, const void* weight, float eps, int64_t R,
                        int64_t D, void* out, int64_t x_is_bf16, int64_t weight_is_bf16,
                        int64_t threads) {
    const Call call{x, weight, eps, R, D, out, threads};
    if (x_is_bf16 && weight_is_bf16) rows<bf16, bf16, bf16>(call);
    else if (x_is_bf16) rows<bf16, float, float>(call);
    else if (weight_is_bf16) rows<float, bf16, float>(call);
    else rows<float, float, float>(call);
}
