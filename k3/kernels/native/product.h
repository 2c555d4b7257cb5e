// Products of a few rows with a matrix: weights are read once, in order, and every row
// of a batch is summed as it would be alone.
#pragma once
#include <type_traits>

#include "lanes.h"

namespace k3 {

constexpr int64_t AHEAD_BYTES = 8192;
// Rows of W, or of MXFP4, for which there are registers beside rows of x.
#if defined(__AVX512F__)
constexpr int TALL = 2;
#else
constexpr int TALL = 1;
#endif

// Values from one row of x to the next: whole vectors, an odd number of them, so that
// rows of a batch do not meet in one cache set.
template <class T>
K3_INLINE int64_t pitch(int64_t cols) {
    constexpr int64_t step = LANES * T::PER_LANE;
    return ((cols + step - 1) / step | 1) * step;
}

// R rows of W by N rows of x; with `ahead` the memory that comes next is asked for.
template <class T, int R, int N>
K3_INLINE void product_block(const typename T::weight* w, int64_t cols,
                             const typename T::value* x, Sums (*sums)[4], bool ahead) {
    constexpr int P = T::VECTORS;
    constexpr int64_t each = LANES * T::PER_LANE, step = each * P;
    const int64_t ldx = pitch<T>(cols), whole = cols / step * step;
    const int64_t own = R * cols * static_cast<int64_t>(sizeof *w);
    const char* next = reinterpret_cast<const char*>(w) +
                       (own > AHEAD_BYTES ? own : AHEAD_BYTES);
    Sums acc[R][N] = {};
    for (int64_t c = 0; c < whole; c += step) {
        Words a[R][P];
        for (int r = 0; r < R; ++r) {
            T::spread(words(w + r * cols + c), a[r]);
            if constexpr (N > 1)
                for (int p = 0; p < P; ++p) K3_ONCE(a[r][p]);
        }
        if (ahead)
            for (int r = 0; r < R; ++r, next += 64) __builtin_prefetch(next, 0, 2);
        for (int p = 0; p < P; ++p)
            for (int n = 0; n < N; ++n) {
                Words b = words(x + n * ldx + c + each * p);
                if constexpr (R > 1) K3_ONCE(b);
                for (int r = 0; r < R; ++r) acc[r][n] = T::dot(acc[r][n], a[r][p], b);
            }
    }
    // Unrolled, or all sums would lie in memory for its sake.
    if (__builtin_expect(whole < cols, 0))
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            int64_t bytes = (cols - whole) * static_cast<int64_t>(sizeof *w);
            Words a[P];
            T::spread(words_part(w + r * cols + whole, bytes), a);
            for (int p = 0; p < P && whole + each * p < cols; ++p)
#pragma GCC unroll 8
                for (int n = 0; n < N; ++n)
                    acc[r][n] = T::dot(acc[r][n], a[p],
                                       words(x + n * ldx + whole + each * p));
        }
    for (int n = 0; n < N; ++n)
        for (int r = 0; r < R; ++r) sums[n][r] = acc[r][n];
}

// Four rows of W by N rows of x; for fewer than four each is read in a stream of its
// own, which the processor foresees better than four short ones.
template <class T, int N>
K3_INLINE void product_four(const typename T::weight* w, int64_t cols,
                            const typename T::value* x, float* y, int64_t ldy,
                            bool ahead) {
    Sums sums[N][4];
    if constexpr (N < 4) {
        // Widening takes the turns in which the processor would have looked ahead.
        const bool asks = T::VECTORS > 1 && (N > 1 || cols * sizeof *w <= 1024);
        for (int r = 0; r < 4; ++r) {
            Sums one[N][4];
            product_block<T, 1, N>(w + r * cols, cols, x, one, asks);
            for (int n = 0; n < N; ++n) sums[n][r] = one[n][0];
        }
    } else {
        product_block<T, 4, N>(w, cols, x, sums, ahead);
    }
    for (int n = 0; n < N; ++n) total4(sums[n], y + n * ldy);
}

#if defined(__AVX512F__)
// Four rows of W by eight rows of x, two rows of W at a time: what is left of the first
// two stays in registers.
template <class T>
K3_INLINE void product_eight(const typename T::weight* w, int64_t cols,
                             const typename T::value* x, float* y, int64_t ldy,
                             bool ahead) {
    Sums sums[8][4];
    __m512 two[8];
    product_block<T, 2, 8>(w, cols, x, sums, ahead);
    for (int n = 0; n < 8; ++n) two[n] = total_two(sums[n][0], sums[n][1]);
    product_block<T, 2, 8>(w + 2 * cols, cols, x, sums, ahead);
    for (int n = 0; n < 8; ++n)
        total_both(two[n], total_two(sums[n][0], sums[n][1]), y + n * ldy);
}
#endif

template <class T, int N>
K3_INLINE void product_one(const typename T::weight* w, int64_t cols,
                           const typename T::value* x, float* y, int64_t ldy) {
    Sums sums[N][4];
    product_block<T, 1, N>(w, cols, x, sums, false);
    for (int n = 0; n < N; ++n) {
        // As in a group of four: the order of a sum must not depend on its place.
        Sums four[4] = {sums[n][0], {}, {}, {}};
        float found[4];
        total4(four, found);
        y[n * ldy] = found[0];
    }
}

// Calls f(constant, first) for a batch in parts of 4 and what is left.
template <class F>
K3_INLINE void parts(int64_t batch, F&& f) {
    int64_t n = 0;
    for (; batch - n >= 4; n += 4) f(std::integral_constant<int, 4>{}, n);
    if (batch - n == 3) f(std::integral_constant<int, 3>{}, n);
    else if (batch - n == 2) f(std::integral_constant<int, 2>{}, n);
    else if (batch > n) f(std::integral_constant<int, 1>{}, n);
}

// y[n][r] = x[n] . W[r] for rows begin..end of W [rows cols]; x has the pitch of its
// type and zeros behind each row.
template <class T>
void product(const typename T::weight* w, int64_t begin, int64_t end, int64_t cols,
             const typename T::value* x, int64_t batch, float* y, int64_t ldy) {
    const int64_t ldx = pitch<T>(cols);
    // Eight short rows of x fit into the first cache beside those of W.
    const bool narrow = cols * static_cast<int64_t>(sizeof *x) <= 2048;
    const int64_t eights = TALL > 1 && narrow ? batch / 8 * 8 : 0;
    int64_t r = begin;
    for (; r + 4 <= end; r += 4) {
#if defined(__AVX512F__)
        for (int64_t n = 0; n < eights; n += 8)
            product_eight<T>(w + r * cols, cols, x + n * ldx, y + n * ldy + r, ldy,
                             n == 0);
#endif
        parts(batch - eights, [&](auto count, int64_t m) {
            constexpr int N = decltype(count)::value;
            const int64_t n = eights + m;
            product_four<T, N>(w + r * cols, cols, x + n * ldx, y + n * ldy + r, ldy,
                               n == 0);
        });
    }
    for (; r < end; ++r)
        parts(batch, [&](auto count, int64_t n) {
            constexpr int N = decltype(count)::value;
            product_one<T, N>(w + r * cols, cols, x + n * ldx, y + n * ldy + r, ldy);
        });
}

// Compiled once, in jobs.cpp.
#define K3_FOR(T)                                                                 \
    extern template void product<T>(const T::weight*, int64_t, int64_t, int64_t,  \
                                    const T::value*, int64_t, float*, int64_t);
K3_FOR(Fp32)
K3_FOR(Bf16)
K3_FOR(Stored)
#undef K3_FOR

}  // namespace k3
