// y = x W^T for a few rows of x; see __AVX512BF16__ in lanes.h.
#include "product.h"

#include "api.h"
#include "jobs.h"
#include "mx.h"

namespace {

using namespace k3;

template <class T>
void rows(const typename T::value* x, Matrix w, int64_t batch, int64_t out_features,
          int64_t in_features, typename T::value* y, int64_t threads) {
    using V = typename T::value;
    static thread_local Scratch scratch;
    const int64_t ldx = row_pitch<T>(in_features, w.scale), ldy = out_features;
    scratch.reserve(batch * (ldx * static_cast<int64_t>(sizeof(V)) + ldy * 4) + 4096);
    auto* packed = scratch.take<V>(batch * ldx);
    for (int64_t n = 0; n < batch; ++n) {
        V* row = packed + n * ldx;
        std::memcpy(row, x + n * in_features, in_features * sizeof(V));
        std::memset(row + in_features, 0, (ldx - in_features) * sizeof(V));
        if (w.scale) mx_arrange<T>(row, in_features);
    }
    float* sums;
    if constexpr (T::PER_LANE == 1) sums = y;
    else sums = scratch.take<float>(batch * ldy);
    Job job{w, out_features, in_features, packed, batch, sums, ldy, false, batch > 16};
    run_jobs<T>(&job, 1, threads);
    if constexpr (T::PER_LANE == 2) T::pack(sums, y, batch * ldy);
}

}  // namespace

// x [batch in], w [out in] (or MXFP4 bytes [out in/2] with scales [out in/32]) ->
// y [batch out]; x, y and a dense w are fp32 or (trunk 1) bf16, or (2) w alone is bf16.
K3_API void k3_product(const void* x, const void* w, const uint8_t* scale,
                       int64_t batch, int64_t out_features, int64_t in_features,
                       void* y, int64_t trunk, int64_t threads) {
    Matrix matrix{w, scale};
    if (trunk == 1)
        rows<Bf16>(static_cast<const bf16*>(x), matrix, batch, out_features,
                   in_features, static_cast<bf16*>(y), threads);
    else
        (trunk == 2 ? rows<Stored> : rows<Fp32>)(static_cast<const float*>(x), matrix,
                                                 batch, out_features, in_features,
                                                 static_cast<float*>(y), threads);
}
