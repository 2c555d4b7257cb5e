// y = x W^T for many rows of x and one or more matrices; see gemm.h, and
// __AVX512BF16__ in lanes.h.
#include "gemm.h"

#include "api.h"
#include "jobs.h"
#include "pool.h"

namespace k3 {
namespace gemm {

namespace {

// Each row of a panel of W by one of x, in every lane.
template <int64_t P>
K3_INLINE void add(const float* x, vec a, vec b, vec& low, vec& high) {
    if constexpr (P == 1) {
        const vec one = broadcast(*x);
        low += one * a;
        high += one * b;
    } else {
        int32_t pair;
        std::memcpy(&pair, x, sizeof pair);
        const Words one = Words{} + pair;
        low = (vec)Bf16::dot((Sums)low, (Words)a, one);
        high = (vec)Bf16::dot((Sums)high, (Words)b, one);
    }
}

// N rows of a panel of x; of what it writes only `rows` by `cols` are there.
template <int64_t P, int64_t N>
void multiply(const float* x, const float* w, int64_t depth, float* y, int64_t ldy,
              int64_t rows, int64_t cols, bool adds) {
    vec low[N] = {}, high[N] = {};
    for (int64_t n = 0; n < rows; ++n) {
        __builtin_prefetch(y + n * ldy, 1, 3);
        __builtin_prefetch(y + n * ldy + cols - 1, 1, 3);
    }
    for (int64_t c = 0; c < depth; ++c) {
        const vec a = load(w + c * COLS), b = load(w + c * COLS + W);
#pragma GCC unroll 12
        for (int64_t n = 0; n < N; ++n) add<P>(x + c * ROWS + n, a, b, low[n], high[n]);
    }
    const int64_t first = least(cols, W), second = cols - first;
#pragma GCC unroll 12
    for (int64_t n = 0; n < N; ++n) {
        if (n >= rows) break;
        float* to = y + n * ldy;
        store_n(to, adds ? load_n(to, first) + low[n] : low[n], first);
        if (second)
            store_n(to + W, adds ? load_n(to + W, second) + high[n] : high[n], second);
    }
}

// Some columns of some rows of x by all matrices; a task is a group of panels of W.
template <class T>
struct Part {
    const Rows<T>& x;
    int64_t row, rows, begin, depth;
    const Product* products;
    int64_t count, threads;

    void pack(float* packed) const {
        parallel(threads, panels(rows, ROWS), [&](int64_t i) {
            pack_x<T>(x, row + i * ROWS, begin, depth,
                      packed + i * ROWS * lanes<T>(depth));
        });
    }

    // `wide` panels of one matrix from the first on, or those there are.
    void group(const Product& to, int64_t first, int64_t wide,
               const float* packed) const {
        static thread_local Scratch scratch;
        const int64_t each = lanes<T>(depth), size = COLS * each;
        scratch.reserve(wide * size * static_cast<int64_t>(sizeof(float)));
        auto* panel = scratch.take<float>(wide * size);
        const int64_t some = least(wide, panels(to.w.rows, COLS) - first);
        for (int64_t i = 0; i < some; ++i)
            pack_w<T>(to.w, (first + i) * COLS, begin, depth, panel + i * size);
        for (int64_t r = 0; r < rows; r += ROWS)
            for (int64_t i = 0; i < some; ++i) {
                const int64_t c = (first + i) * COLS;
                tile<T>(packed + r * each, panel + i * size, depth,
                        to.y + (row + r) * to.ldy + c, to.ldy, least(ROWS, rows - r),
                        least(COLS, to.w.rows - c), begin > 0);
            }
    }

    void run(const float* packed) const {
        int64_t all = 0, tasks = 0;
        for (int64_t j = 0; j < count; ++j) all += panels(products[j].w.rows, COLS);
        // What is packed of x comes from afar once for so many panels of W.
        const int64_t wide = threads > 1 && all < 8 * threads ? 1 : 2;
        auto groups = [&](const Product& to) {
            return panels(panels(to.w.rows, COLS), wide);
        };
        for (int64_t j = 0; j < count; ++j) tasks += groups(products[j]);
        parallel(threads, tasks, [&](int64_t i) {
            const Product* to = products;
            for (; i >= groups(*to); ++to) i -= groups(*to);
            group(*to, i * wide, wide, packed);
        });
    }
};

}  // namespace

template <class T>
void tile(const float* x, const float* w, int64_t depth, float* y, int64_t ldy,
          int64_t rows, int64_t cols, bool adds) {
    constexpr int64_t third = ROWS / 3;
    auto* some = rows > 2 * third ? multiply<PER<T>, ROWS>
                 : rows > third   ? multiply<PER<T>, 2 * third>
                                  : multiply<PER<T>, third>;
    some(x, w, lanes<T>(depth), y, ldy, rows, cols, adds);
}

template <class T>
void multiply(const Rows<T>& x, const Product* products, int64_t count, int64_t threads,
              float* packed) {
    for (int64_t row = 0; row < x.count; row += AT_ONCE)
        // Of no columns there is one part too: its sums are zeros.
        for (int64_t begin = 0; begin == 0 || begin < x.cols; begin += DEPTH<T>) {
            const Part<T> part{x,
                            row,
                            least(AT_ONCE, x.count - row),
                            begin,
                            least(DEPTH<T>, x.cols - begin),
                            products,
                            count,
                            threads};
            part.pack(packed);
            part.run(packed);
        }
}

#define K3_FOR(T)                                                                  \
    template void multiply<T>(const Rows<T>&, const Product*, int64_t, int64_t,    \
                              float*);                                             \
    template void tile<T>(const float*, const float*, int64_t, float*, int64_t,    \
                          int64_t, int64_t, bool);
K3_FOR(Fp32)
K3_FOR(Bf16)

}  // namespace gemm

}  // namespace k3

// For each of `count` products y [n rows] of x [n cols].
K3_API void k3_gemm(const float* x, int64_t n, int64_t cols, const void* products,
                    int64_t count, int64_t threads) {
    using namespace k3;
    static thread_local Scratch scratch;
    const gemm::Rows<Fp32> rows{x, cols, n, cols};
    scratch.reserve(gemm::room(rows) * static_cast<int64_t>(sizeof(float)));
    gemm::multiply(rows, static_cast<const gemm::Product*>(products), count, threads,
                   scratch.take<float>(gemm::room(rows)));
}
