// Chosen experts over few rows: one pass over the weights of each expert in use.
// See __AVX512BF16__ in lanes.h.
#include "experts.h"

#include <algorithm>

#include "api.h"
#include "decode.h"
#include "mx.h"
#include "pool.h"

namespace k3 {

namespace {

// From so many rows an expert on, on average, matrices are packed before they are
// multiplied: faster, but summed otherwise, so it must not depend on what rows hold.
// Of dense bf16, which is multiplied as it lies, twice as many.
constexpr int64_t MANY = 24;
// Tokens at once, so that memory is bounded: weights are read again for the next ones.
// With 32 an expert, on average, their products hide that.
int64_t at_once(const Experts& x, int64_t k) {
    const int64_t most = 32 * x.E / k;
    return most < 64 ? 64 : most > 1024 ? 1024 : most;
}

Matrix matrix(const void* const* data, const uint8_t* const* scale, int64_t e) {
    return {data[e], scale ? scale[e] : nullptr};
}

template <class T>
struct Grouped {
    using V = typename T::value;
    Scratch& scratch;
    const Experts& x;
    const Group* groups;
    int64_t used, all, threads;

    // Where the packed rows of an assignment start.
    int64_t place(int64_t first, int64_t cols) const {
        return first * row_pitch<T>(cols, x.s1 != nullptr);
    }

    // hidden [all F] = SiTU(w1 z, w3 z) of gathered rows.
    void up(const V* rows, float* gate, float* linear) {
        auto* jobs = scratch.take<Job>(2 * used);
        for (int64_t g = 0; g < used; ++g) {
            auto [e, first, count] = groups[g];
            const V* mine = rows + place(first, x.L);
            jobs[2 * g] = {matrix(x.w1, x.s1, e), x.F, x.L, mine, count,
                           gate + first * x.F,    x.F};
            jobs[2 * g + 1] = {matrix(x.w3, x.s3, e), x.F, x.L, mine, count,
                               linear + first * x.F,  x.F};
        }
        run_jobs<T>(jobs, 2 * used, threads);
        parallel(all * x.F < 16384 ? 1 : threads, all, [&](int64_t i) {
            situ_row<T>(gate + i * x.F, linear + i * x.F, x.F, x.beta, x.linear_beta);
        });
    }

    void down(const V* hidden, float* y) {
        auto* jobs = scratch.take<Job>(used);
        for (int64_t g = 0; g < used; ++g) {
            auto [e, first, count] = groups[g];
            jobs[g] = {matrix(x.w2, x.s2, e),
                       x.L,
                       x.F,
                       hidden + place(first, x.F),
                       count,
                       y + first * x.L,
                       x.L};
        }
        run_jobs<T>(jobs, used, threads);
    }
};

}  // namespace

int64_t by_expert(const Experts& experts, const Chosen& chosen, Group* groups,
                  int64_t* token, float* weight, int64_t* start) {
    const int64_t all = chosen.n * chosen.k;
    std::memset(start, 0, (experts.E + 1) * sizeof(int64_t));
    for (int64_t i = 0; i < all; ++i) ++start[chosen.index[i] + 1];
    int64_t used = 0;
    for (int64_t e = 0; e < experts.E; ++e) {
        if (start[e + 1]) groups[used++] = {e, start[e], start[e + 1]};
        start[e + 1] += start[e];
    }
    for (int64_t i = 0; i < all; ++i) {
        int64_t at = start[chosen.index[i]]++;
        token[at] = i / chosen.k;
        weight[at] = chosen.weights[i];
    }
    return used;
}

template <class T>
int64_t experts_room(const Experts& x, const Chosen& chosen) {
    const int64_t all = chosen.n * chosen.k, used = all < x.E ? all : x.E;
    const bool arranged = x.s1 != nullptr;
    const int64_t packed = row_pitch<T>(x.L, arranged) + row_pitch<T>(x.F, arranged);
    const int64_t wide = 2 * x.F < x.L ? x.L : 2 * x.F, size = sizeof(typename T::value);
    const int64_t lists = used * (3 * sizeof(Job) + sizeof(Group)) + x.E * 8;
    return all * (packed * size + wide * 4 + 12) + lists + 4096;
}

template <class T>
void run_experts(Scratch& scratch, const Experts& experts, const Chosen& chosen,
                 const float* z, float* out, int64_t threads) {
    const int64_t L = experts.L, F = experts.F, all = chosen.n * chosen.k;
    const int64_t mark = scratch.mark(), most = all < experts.E ? all : experts.E;
    auto* groups = scratch.take<Group>(most);
    auto* token = scratch.take<int64_t>(all);
    auto* weight = scratch.take<float>(all);
    auto* start = scratch.take<int64_t>(experts.E + 1);
    const int64_t used = by_expert(experts, chosen, groups, token, weight, start);
    Grouped<T> grouped{scratch, experts, groups, used, all, threads};
    auto* rows = scratch.take<typename T::value>(grouped.place(all, L));
    const bool arranged = experts.s1 != nullptr;
    for (int64_t i = 0; i < all; ++i)
        pack_rows<T>(z + token[i] * L, L, 1, L, arranged, rows + grouped.place(i, L));
    auto* hidden = scratch.take<typename T::value>(grouped.place(all, F));
    const int64_t lined = scratch.mark();
    auto* gate = scratch.take<float>(all * F);
    auto* linear = scratch.take<float>(all * F);
    grouped.up(rows, gate, linear);
    pack_rows<T>(gate, F, all, F, arranged, hidden);
    scratch.back(lined);
    auto* y = scratch.take<float>(all * L);
    grouped.down(hidden, y);
    std::memset(out, 0, chosen.n * L * sizeof(float));
    for (int64_t i = 0; i < all; ++i) {
        float *to = out + token[i] * L, *from = y + i * L;
        over(L, [&](int64_t c, int64_t n) {
            store_n(to + c, load_n(to + c, n) + load_n(from + c, n) * weight[i], n);
        });
    }
    scratch.back(mark);
}

template void run_experts<Fp32>(Scratch&, const Experts&, const Chosen&, const float*,
                                float*, int64_t);
template void run_experts<Bf16>(Scratch&, const Experts&, const Chosen&, const float*,
                                float*, int64_t);
template void run_experts<Stored>(Scratch&, const Experts&, const Chosen&,
                                  const float*, float*, int64_t);

namespace {

// Tokens `most` at a time.
template <class F>
void in_turn(const Chosen& chosen, int64_t most, F&& run) {
    for (int64_t first = 0; first < chosen.n; first += most) {
        const int64_t n = chosen.n - first < most ? chosen.n - first : most;
        const int64_t at = first * chosen.k;
        run(first, Chosen{n, chosen.k, chosen.index + at, chosen.weights + at});
    }
}

template <class T>
void many(const Experts& experts, const Chosen& chosen, const typename T::value* z,
          float* out, int64_t threads) {
    const bool narrow = sizeof(typename T::weight) < sizeof(float);
    const auto form = experts.s1 ? gemm::MXFP4 : narrow ? gemm::BF16 : gemm::FP32;
    const int64_t some = at_once(experts, chosen.k);
    const int64_t most = std::max(some, many_at_once(experts, chosen, threads));
    in_turn(chosen, most, [&](int64_t first, const Chosen& part) {
        const int64_t at = first * experts.L;
        run_many<typename T::trunk>(experts, part, form, z + at, out + at, threads);
    });
}

template <class T>
void combine(const Experts& experts, const Chosen& chosen, const typename T::value* z,
             float* out, int64_t threads) {
    const int64_t least = T::PER_LANE == 2 && !experts.s1 ? 2 * MANY : MANY;
    if (chosen.n * chosen.k >= least * experts.E)
        return many<T>(experts, chosen, z, out, threads);
    Scratch scratch;  // other parts of a prompt use its memory after it
    const int64_t bound = at_once(experts, chosen.k), L = experts.L;
    const int64_t most = chosen.n < bound ? chosen.n : bound;
    const Chosen largest{most, chosen.k, nullptr, nullptr};
    scratch.reserve(experts_room<T>(experts, largest) + most * L * 4 + 4096);
    auto* wide = scratch.take<float>(most * L);
    in_turn(chosen, most, [&](int64_t first, const Chosen& part) {
        const auto* rows = z + first * L;
        over(part.n * L,
             [&](int64_t i, int64_t m) { store_n(wide + i, load_n(rows + i, m), m); });
        run_experts<T>(scratch, experts, part, wide, out + first * L, threads);
    });
}

}  // namespace

}  // namespace k3

// out [n L] fp32 of z [n L] and dense experts in fp32 or (trunk 1) bf16, or (2) of fp32
// and experts in bf16; `experts` as struct Experts.
K3_API void k3_experts(const void* experts, const void* z, const int64_t* index,
                       const float* weights, int64_t n, int64_t k, float* out,
                       int64_t trunk, int64_t threads) {
    auto& x = *static_cast<const k3::Experts*>(experts);
    k3::Chosen chosen{n, k, index, weights};
    if (trunk == 1)
        k3::combine<k3::Bf16>(x, chosen, static_cast<const k3::bf16*>(z), out, threads);
    else
        (trunk == 2 ? k3::combine<k3::Stored> : k3::combine<k3::Fp32>)(
            x, chosen, static_cast<const float*>(z), out, threads);
}
