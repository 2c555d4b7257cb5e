// y = x W^T for a few rows of x, and for more of them of MXFP4.
// See __AVX512BF16__ in lanes.h.
#include "product.h"

#include "api.h"
#include "gemm.h"
#include "jobs.h"
#include "mx.h"

namespace {

using namespace k3;

// Rows of x up to which MXFP4 is multiplied from its bytes.
constexpr int64_t FEW = 16;

template <class T>
void rows(const typename T::value* x, Matrix w, int64_t batch, int64_t out_features,
          int64_t in_features, typename T::value* y, int64_t threads) {
    using V = typename T::value;
    static thread_local Scratch scratch;
    const bool packs = w.scale && batch > FEW;
    const gemm::Rows<typename T::trunk> given{x, in_features, batch, in_features};
    const int64_t ldx = row_pitch<T>(in_features, w.scale), ldy = out_features;
    const int64_t floats = packs ? gemm::room(given) : 0;
    const int64_t values = packs ? 0 : batch * ldx;
    scratch.reserve((floats + batch * ldy) * 4 + values * sizeof(V) + 4096);
    float* sums;
    if constexpr (T::PER_LANE == 1) sums = y;
    else sums = scratch.take<float>(batch * ldy);
    if (packs) {
        const gemm::Source source{w.data, w.scale, gemm::MXFP4, ldy, in_features};
        const gemm::Product all{source, sums, ldy};
        gemm::multiply(given, &all, 1, threads, scratch.take<float>(floats));
    } else {
        auto* packed = scratch.take<V>(values);
        for (int64_t n = 0; n < batch; ++n) {
            V* row = packed + n * ldx;
            std::memcpy(row, x + n * in_features, in_features * sizeof(V));
            std::memset(row + in_features, 0, (ldx - in_features) * sizeof(V));
            if (w.scale) mx_arrange<T>(row, in_features);
        }
        Job job{w, out_features, in_features, packed, batch, sums, ldy, false};
        run_jobs<T>(&job, 1, threads);
    }
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
