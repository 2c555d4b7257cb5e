// Chosen experts with many rows each: an expert's rows are gathered while they are
// packed, and its matrices decoded or widened (gemm.h).
// See __AVX512BF16__ in lanes.h.
#include <algorithm>
#include <type_traits>

#include "decode.h"
#include "experts.h"
#include "gemm.h"
#include "pool.h"

namespace k3 {

namespace {

// Rows of one expert that a task takes: its matrices are packed once for them.
constexpr int64_t TOGETHER = 16 * gemm::ROWS, SLICE = 64;
// Bytes of results that wait to be added up, where threads leave them in any order, and
// of each row in the lists that a single thread goes by.
constexpr int64_t WAITING = 2097152, LISTED = 12;

template <class T>
struct Many {
    using V = typename T::value;
    const Experts& x;
    const V* z;
    const int64_t* token;
    const float* weight;
    gemm::Form form;
    float* out;

    gemm::Source source(const void* const* data, const uint8_t* const* scale, int64_t e,
                        int64_t rows, int64_t cols) const {
        return {data[e], scale ? scale[e] : nullptr, form, rows, cols};
    }

    // y [count L] = w2 SiTU(w1 z, w3 z) of an expert's rows.
    void expert(const Group& rows, float* y) const {
        static thread_local Scratch scratch;
        auto [e, first, count] = rows;
        const int64_t inner = count * x.F;
        const gemm::Rows<T> given{z, x.L, count, x.L, token + first};
        const gemm::Rows<T> empty{nullptr, x.F, count, x.F};
        const int64_t more = std::max(gemm::room(given), gemm::room(empty));
        scratch.reserve((2 * inner + more) * static_cast<int64_t>(sizeof(float)) + 256);
        auto* packed = scratch.take<float>(more);
        auto* gate = scratch.take<float>(inner);
        auto* linear = scratch.take<float>(inner);
        const gemm::Product up[] = {{source(x.w1, x.s1, e, x.F, x.L), gate, x.F},
                                    {source(x.w3, x.s3, e, x.F, x.L), linear, x.F}};
        gemm::multiply(given, up, 2, 1, packed);
        T::round_row(gate, inner);
        T::round_row(linear, inner);
        situ_row<T>(gate, linear, inner, x.beta, x.linear_beta);
        // A hidden value takes the place of one that has been read.
        auto* hidden = reinterpret_cast<V*>(gate);
        if constexpr (!std::is_same<V, float>::value) T::pack(gate, hidden, inner);
        const gemm::Product down{source(x.w2, x.s2, e, x.L, x.F), y, x.L};
        gemm::multiply<T>({hidden, x.F, count, x.F}, &down, 1, 1, packed);
    }

    // Columns of the results of a group are added to those of their tokens.
    void add(const Group& rows, const float* y, int64_t begin, int64_t width) const {
        for (int64_t i = 0; i < rows.count; ++i) {
            float* to = out + token[rows.first + i] * x.L + begin;
            const float *from = y + i * x.L + begin, some = weight[rows.first + i];
            over(width, [&](int64_t c, int64_t n) {
                const vec result = T::kept(load_n(from + c, n));
                store_n(to + c, load_n(to + c, n) + result * some, n);
            });
        }
    }
};

}  // namespace

int64_t many_at_once(const Experts& x, const Chosen& chosen, int64_t threads) {
    const int64_t row = x.L * static_cast<int64_t>(sizeof(float));
    return WAITING / std::max<int64_t>(chosen.k * (threads > 1 ? row : LISTED), 1);
}

template <class T>
void run_many(const Experts& experts, const Chosen& chosen, gemm::Form form,
              const typename T::value* z, float* out, int64_t threads) {
    const int64_t all = chosen.n * chosen.k, L = experts.L;
    const int64_t most = all / TOGETHER + (all < experts.E ? all : experts.E);
    const int64_t waiting = (threads > 1 ? all : gemm::least(all, TOGETHER)) * L;
    Scratch scratch;
    scratch.reserve(all * LISTED + experts.E * 8 + waiting * 4 +
                    2 * most * static_cast<int64_t>(sizeof(Group)) + 1024);
    auto* groups = scratch.take<Group>(most);
    auto* parts = scratch.take<Group>(most);
    auto* token = scratch.take<int64_t>(all);
    auto* weight = scratch.take<float>(all);
    auto* start = scratch.take<int64_t>(experts.E + 1);
    auto* y = scratch.take<float>(waiting);
    const int64_t used = by_expert(experts, chosen, groups, token, weight, start);
    int64_t count = 0;
    for (int64_t g = 0; g < used; ++g)
        for (int64_t i = 0; i < groups[g].count; i += TOGETHER)
            parts[count++] = {groups[g].expert, groups[g].first + i,
                              gemm::least(TOGETHER, groups[g].count - i)};
    const Many<T> many{experts, z, token, weight, form, out};
    std::memset(out, 0, chosen.n * L * sizeof(float));
    if (threads <= 1) {
        for (int64_t i = 0; i < count; ++i) {
            many.expert(parts[i], y);
            many.add(parts[i], y, 0, L);
        }
        return;
    }
    parallel(threads, count,
             [&](int64_t i) { many.expert(parts[i], y + parts[i].first * L); });
    parallel(threads, (L + SLICE - 1) / SLICE, [&](int64_t s) {
        const int64_t begin = s * SLICE;
        for (int64_t i = 0; i < count; ++i)
            many.add(parts[i], y + parts[i].first * L, begin,
                     gemm::least(SLICE, L - begin));
    });
}

template void run_many<Fp32>(const Experts&, const Chosen&, gemm::Form, const float*,
                             float*, int64_t);
template void run_many<Bf16>(const Experts&, const Chosen&, gemm::Form, const bf16*,
                             float*, int64_t);

}  // namespace k3
