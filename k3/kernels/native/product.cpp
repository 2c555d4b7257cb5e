// y = x W^T for a few rows of x; see __AVX512BF16__ in lanes.h.
#include "product.h"

#include "api.h"
#include "jobs.h"

namespace {

using namespace k3;

template <class T>
void rows(const typename T::value* x, Matrix w, int64_t batch, int64_t out_features,
          int64_t in_features, typename T::value* y, int64_t threads) {
    static thread_local Scratch scratch;
    const int64_t ldy = out_features;
    scratch.reserve((batch * (pitch<T>(in_features) + in_features + ldy) + 64) * 4);
    auto* wide = scratch.take<float>(batch * in_features);
    for (int64_t i = 0; i < batch * in_features; ++i) wide[i] = widen(x[i]);
    auto* packed = packed_rows<T>(scratch, wide, in_features, batch, in_features,
                                  w.scale != nullptr);
    auto* sums = scratch.take<float>(batch * ldy);
    Job job{w, out_features, in_features, packed, batch, sums, ldy, false};
    run_jobs<T>(&job, 1, threads);
    T::pack(sums, y, batch * ldy);
}

}  // namespace

// x [batch in], w [out in] (or MXFP4 bytes [out in/2] with scales [out in/32]) ->
// y [batch out]; x, y and a dense w are fp32 or (is_bf16) bf16.
K3_API void k3_product(const void* x, const void* w, const uint8_t* scale,
                       int64_t batch, int64_t out_features, int64_t in_features,
                       void* y, int64_t is_bf16, int64_t threads) {
    Matrix matrix{w, scale};
    if (is_bf16)
        rows<Bf16>(static_cast<const bf16*>(x), matrix, batch, out_features,
                   in_features, static_cast<bf16*>(y), threads);
    else
        rows<Fp32>(static_cast<const float*>(x), matrix, batch, out_features,
                   in_features, static_cast<float*>(y), threads);
}
