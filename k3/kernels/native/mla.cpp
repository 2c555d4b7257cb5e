// Attention of a prompt over keys and values written out for every head, as
// kernels/mla.py: tiles of gemm.h around a softmax that runs from one block of keys to
// the next, so that no row of scores leaves the first cache.
#include <type_traits>

#include "api.h"
#include "gemm.h"
#include "jobs.h"
#include "pool.h"

namespace {

using namespace k3;
using gemm::least;

// Keys in a block, which stay in the second cache with their values.
constexpr int64_t KEYS = 512;
// Rows of scores a power of 2 apart would collide in the first cache.
constexpr int64_t PITCH = KEYS + gemm::COLS;
// Queries of a task: so many while heads are enough for all threads, fewer otherwise.
constexpr int64_t QUERIES = 40 * gemm::ROWS, FEWER = 8 * gemm::ROWS;

// q [B T H nope+rope], kv [B S H nope+V], shared [B S rope] with a pitch between rows,
// out [B T H V]; the T queries are the last of the S tokens.
template <class T>
struct Call {
    const T *q, *kv, *shared;
    T* out;
    int64_t B, tokens, S, H, nope, rope, V, shared_pitch;
    float scale;

    int64_t dim() const { return nope + rope; }
    int64_t wide() const { return gemm::panels(V, gemm::COLS) * gemm::COLS; }
};

// Some queries of one head of one sequence, and their memory.
template <class T>
struct Part {
    const Call<T>& call;
    int64_t b, h, first, count;
    float *keys, *values, *queries, *scores, *weights, *sums, *most, *total;

    static int64_t room(const Call<T>& c, int64_t count) {
        return KEYS * (c.dim() + c.wide()) + gemm::ROWS * (2 * c.dim() + PITCH + KEYS) +
               count * (c.wide() + 2) + 8 * 16;
    }

    Part(const Call<T>& c, int64_t task, int64_t each, Scratch& scratch) : call(c) {
        const int64_t parts = gemm::panels(c.tokens, each);
        b = task / parts / c.H;
        h = task / parts % c.H;
        first = task % parts * each;
        count = least(each, c.tokens - first);
        keys = scratch.take<float>(KEYS * c.dim());
        values = scratch.take<float>(KEYS * c.wide());
        queries = scratch.take<float>(2 * gemm::ROWS * c.dim());
        scores = scratch.take<float>(gemm::ROWS * PITCH);
        weights = scratch.take<float>(gemm::ROWS * KEYS);
        sums = scratch.take<float>(count * c.wide());
        most = scratch.take<float>(count);
        total = scratch.take<float>(count);
    }

    // Keys and values of a block, in panels of COLS keys and of COLS values.
    void pack(int64_t begin, int64_t n) {
        const int64_t both = call.nope + call.V, pitch = call.H * both;
        const T* kv = call.kv + (b * call.S + begin) * pitch + h * both;
        const T* shared = call.shared + (b * call.S + begin) * call.shared_pitch;
        const auto form = std::is_same<T, bf16>::value ? gemm::BF16 : gemm::FP32;
        const gemm::Source own{kv, nullptr, form, n, pitch};
        const gemm::Source common{shared, nullptr, form, n, call.shared_pitch};
        for (int64_t s = 0; s < n; s += gemm::COLS) {
            float* panel = keys + s * call.dim();
            gemm::pack_w<Fp32>(own, s, 0, call.nope, panel);
            gemm::pack_w<Fp32>(common, s, 0, call.rope, panel + call.nope * gemm::COLS);
        }
        for (int64_t s = 0; s < n; ++s)
            for (int64_t v = 0; v < call.V; v += gemm::COLS) {
                const T* from = kv + s * pitch + call.nope + v;
                float* to = values + v * KEYS + s * gemm::COLS;
                over(least(gemm::COLS, call.V - v),
                     [&](int64_t i, int64_t m) { store(to + i, load_n(from + i, m)); });
            }
    }

    // A panel of queries, scaled.
    void take(int64_t row, int64_t rows) {
        float* plain = queries + gemm::ROWS * call.dim();
        for (int64_t i = 0; i < rows; ++i) {
            const int64_t token = b * call.tokens + first + row + i;
            const T* q = call.q + (token * call.H + h) * call.dim();
            float* to = plain + i * call.dim();
            over(call.dim(), [&](int64_t c, int64_t m) {
                store_n(to + c, load_n(q + c, m) * call.scale, m);
            });
        }
        gemm::pack_x<Fp32>({plain, call.dim(), rows, call.dim()}, 0, 0, call.dim(),
                           queries);
    }

    // Scores of one query become weights relative to the greatest so far; what was
    // summed before is brought to the same scale. Of n keys it sees the first `seen`.
    void soften(int64_t row, float* score, int64_t seen, int64_t n) {
        vec top = broadcast(most[row]);
        over(seen, [&](int64_t i, int64_t m) {
            vec x = load_n(score + i, m);
            if (m < W) x = load_lanes(score + i, m, most[row]);
            top = x > top ? x : top;
        });
        float greatest = top[0];
        for (int i = 1; i < W; ++i) greatest = top[i] > greatest ? top[i] : greatest;
        vec all = {};
        over(seen, [&](int64_t i, int64_t m) {
            const vec p = exp_down(load_n(score + i, m) - greatest);
            store_n(score + i, p, m);
            all += m < W ? load_n(score + i, m) : p;
        });
        std::memset(score + seen, 0, static_cast<size_t>(n - seen) * sizeof(float));
        const float kept = exp_down(broadcast(most[row] - greatest))[0];
        total[row] = total[row] * kept + sum(all);
        most[row] = greatest;
        float* so_far = sums + row * call.wide();
        over(call.wide(), [&](int64_t c, int64_t) {
            store(so_far + c, load(so_far + c) * kept);
        });
    }

    // The first m lanes, and a number in the others.
    static vec load_lanes(const float* x, int64_t m, float other) {
        float lanes[W];
        for (int64_t i = 0; i < W; ++i) lanes[i] = i < m ? x[i] : other;
        return load(lanes);
    }

    // A panel of queries against a block of n keys that begins at `begin`.
    void look(int64_t row, int64_t rows, int64_t begin, int64_t n) {
        // The first query of the panel sees so many keys of the block.
        const int64_t seen = call.S - call.tokens + first + row + 1 - begin;
        n = least(n, seen + rows - 1);
        if (n <= 0) return;
        take(row, rows);
        for (int64_t s = 0; s < n; s += gemm::COLS)
            gemm::tile<Fp32>(queries, keys + s * call.dim(), call.dim(), scores + s,
                             PITCH, rows, gemm::COLS, false);
        for (int64_t i = 0; i < rows; ++i) {
            const int64_t some = least(seen + i, n);
            if (some > 0) soften(row + i, scores + i * PITCH, some, n);
            else std::memset(scores + i * PITCH, 0, static_cast<size_t>(n) * 4);
        }
        gemm::pack_x<Fp32>({scores, PITCH, rows, n}, 0, 0, n, weights);
        for (int64_t v = 0; v < call.V; v += gemm::COLS)
            gemm::tile<Fp32>(weights, values + v * KEYS, n,
                             sums + row * call.wide() + v, call.wide(), rows,
                             gemm::COLS, true);
    }

    void run() {
        std::memset(sums, 0, static_cast<size_t>(count * call.wide()) * sizeof(float));
        for (int64_t i = 0; i < count; ++i) {
            most[i] = -3e38f;
            total[i] = 0.0f;
        }
        const int64_t last = call.S - call.tokens + first + count;
        for (int64_t begin = 0; begin < last; begin += KEYS) {
            const int64_t n = least(KEYS, last - begin);
            pack(begin, n);
            for (int64_t row = 0; row < count; row += gemm::ROWS)
                look(row, least(gemm::ROWS, count - row), begin, n);
        }
        for (int64_t i = 0; i < count; ++i) {
            T* out = call.out +
                     ((b * call.tokens + first + i) * call.H + h) * call.V;
            const float* from = sums + i * call.wide();
            over(call.V, [&](int64_t c, int64_t m) {
                store_n(out + c, load_n(from + c, m) / total[i], m);
            });
        }
    }
};

template <class T>
void attend(const Call<T>& call, int64_t threads) {
    const bool parted = call.B * call.H < 2 * threads;
    const int64_t each = least(parted && threads > 1 ? FEWER : QUERIES, call.tokens);
    if (each <= 0) return;
    const int64_t parts = gemm::panels(call.tokens, each);
    parallel(threads, call.B * call.H * parts, [&](int64_t i) {
        static thread_local Scratch scratch;
        scratch.reserve(Part<T>::room(call, each) * static_cast<int64_t>(sizeof(float)));
        Part<T>(call, i, each, scratch).run();
    });
}

}  // namespace

// `sizes`: B, T, S, H, nope, rope, V and the pitch of shared keys; all in fp32, or
// (is_bf16) bf16.
K3_API void k3_mla_attend(const void* q, const void* kv, const void* shared, void* out,
                          const int64_t* sizes, float scale, int64_t is_bf16,
                          int64_t threads) {
    auto run = [&](auto* as) {
        using T = std::remove_pointer_t<decltype(as)>;
        const auto [B, tokens, S, H, nope, rope, V, pitch] =
            *reinterpret_cast<const int64_t(*)[8]>(sizes);
        attend(Call<T>{static_cast<const T*>(q), static_cast<const T*>(kv),
                       static_cast<const T*>(shared), static_cast<T*>(out), B, tokens, S,
                       H, nope, rope, V, pitch, scale},
               threads);
    };
    if (is_bf16) run(static_cast<bf16*>(nullptr));
    else run(static_cast<float*>(nullptr));
}
