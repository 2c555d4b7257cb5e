// Weighted sums of the rows of a matrix: the product with its transpose.
#pragma once
#include "product.h"

namespace k3 {

// out[n][c] += sum over r of p[n][r] W[r][c] for c below width; W has `ld` a row.
template <class T, int N>
K3_INLINE void weighted_part(const typename T::weight* w, int64_t rows, int64_t ld,
                             const float* p, int64_t ldp, float* out, int64_t ldo,
                             int64_t width) {
    constexpr int V = 4;
    int64_t c = 0;
    for (; c + V * LANES <= width; c += V * LANES) {
        Sums acc[N][V];
        for (int n = 0; n < N; ++n)
            for (int v = 0; v < V; ++v)
                acc[n][v] = floats(out + n * ldo + c + v * LANES);
        for (int64_t r = 0; r < rows; ++r) {
            Sums row[V];
            for (int v = 0; v < V; ++v) row[v] = T::row(w + r * ld + c + v * LANES);
            for (int n = 0; n < N; ++n)
                for (int v = 0; v < V; ++v) acc[n][v] += row[v] * p[n * ldp + r];
        }
        for (int n = 0; n < N; ++n)
            for (int v = 0; v < V; ++v) put(out + n * ldo + c + v * LANES, acc[n][v]);
    }
    for (; c < width; ++c)
        for (int n = 0; n < N; ++n)
            for (int64_t r = 0; r < rows; ++r)
                out[n * ldo + c] += widen(w[r * ld + c]) * p[n * ldp + r];
}

template <class T>
void weighted(const typename T::weight* w, int64_t rows, int64_t ld, const float* p,
              int64_t ldp, int64_t batch, float* out, int64_t ldo, int64_t width) {
    constexpr int64_t tile = 32;
    for (int64_t r = 0; r < rows; r += tile) {
        int64_t some = rows - r < tile ? rows - r : tile;
        parts(batch, [&](auto count, int64_t n) {
            constexpr int N = decltype(count)::value;
            weighted_part<T, N>(w + r * ld, some, ld, p + n * ldp + r, ldp,
                                out + n * ldo, ldo, width);
        });
    }
}

}  // namespace k3
