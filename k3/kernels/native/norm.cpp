// RMSNorm, as kernels/norm.py: x / sqrt(mean(x^2) + eps), rounded to x's dtype, times
// the weight.
#include <cmath>

#include "api.h"
#include "pool.h"
#include "simd.h"

namespace {

using namespace k3;

template <class T>
void row(const T* x, const float* weight, float eps, int64_t D, float* out) {
    vec squares = {};
    over(D, [&](int64_t i, int64_t n) {
        vec v = load_n(x + i, n);
        squares += v * v;
    });
    float scale = 1.0f / std::sqrt(sum(squares) / static_cast<float>(D) + eps);
    over(D, [&](int64_t i, int64_t n) {
        T rounded[W];
        store(rounded, load_n(x + i, n) * scale);
        store_n(out + i, load(rounded) * load_n(weight + i, n), n);
    });
}

template <class T>
void rows(const T* x, const float* weight, float eps, int64_t R, int64_t D, float* out,
          int64_t threads) {
    constexpr int64_t block = 32;
    bool small = R * D < 16384;
    parallel(small ? 1 : threads, (R + block - 1) / block, [&](int64_t b) {
        for (int64_t r = b * block; r < R && r < (b + 1) * block; ++r)
            row(x + r * D, weight, eps, D, out + r * D);
    });
}

}  // namespace

// x [R D] fp32 or (is_bf16) bf16, weight [D] fp32 -> out [R D] fp32.
K3_API void k3_rms_norm(const void* x, const float* weight, float eps, int64_t R,
                            int64_t D, float* out, int64_t is_bf16, int64_t threads) {
    if (is_bf16) rows(static_cast<const bf16*>(x), weight, eps, R, D, out, threads);
    else rows(static_cast<const float*>(x), weight, eps, R, D, out, threads);
}
