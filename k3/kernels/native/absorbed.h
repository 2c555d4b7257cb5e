// Absorbed attention over latent rows, eight heads at a time: two lanes of a vector are
// a head's, so neither scores nor weights are summed across a vector.
#pragma once
#include <cmath>
#include <type_traits>

#include "lanes.h"

namespace k3 {

constexpr int64_t HEADS = 8, PAIR = 2 * HEADS;
// From the rows that are looked at to those that are asked for, into the second cache:
// the first has too few misses under way to wait for memory.
constexpr int64_t ROWS_AHEAD_BYTES = 8192;
// Rows of a context that are looked at together: scores, weights and the weighted sum
// of all heads while they lie in the first cache.
template <class T>
constexpr int64_t TILE = 32 * T::PER_LANE;

K3_INLINE int64_t eights(int64_t heads) { return (heads + HEADS - 1) / HEADS; }

// Eight bytes, eight times.
K3_INLINE Words eight_times(const void* p) {
    int64_t x;
    std::memcpy(&x, p, sizeof x);
#if defined(__AVX512F__)
    return (Words)_mm512_set1_epi64(x);
#else
    typedef int64_t Long __attribute__((vector_size(64)));
    return (Words)(x - Long{});
#endif
}

// Values that eight heads' queries take: pieces of eight bytes of a row, each of all
// heads side by side.
template <class T>
K3_INLINE int64_t queries_room(int64_t heads, int64_t width) {
    const int64_t step = 2 * T::PER_LANE;
    return eights(heads) * ((width + step - 1) / step) * LANES * T::PER_LANE;
}

// Query h [width] to its place among them; places of no head hold zeros.
template <class T>
void place_query(const float* x, int64_t h, int64_t width, typename T::value* queries) {
    constexpr int64_t step = 2 * T::PER_LANE, most = 16 * step;
    const int64_t pieces = (width + step - 1) / step;
    auto* mine = queries + (h / HEADS * pieces * HEADS + h % HEADS) * step;
    for (int64_t c = 0; c < width; c += most) {
        const int64_t some = width - c < most ? width - c : most;
        typename T::value packed[most] = {};
        T::pack(x + c, packed, some);
        for (int64_t i = 0; i < some; i += step)
            std::memcpy(mine + (c + i) * HEADS, packed + i, step * sizeof *packed);
    }
}

// As T::pack rounds, in one instruction where there is one.
K3_INLINE void store_short(float* p, vec x) { store(p, x); }
K3_INLINE void store_short(bf16* p, vec x) {
#if defined(__AVX512BF16__)
    const __m256bh kept = _mm512_cvtneps_pbh((__m512)x);
    std::memcpy(p, &kept, sizeof kept);
#else
    store(p, x);
#endif
}

// Scores of R rows, two to a vector: lanes of a head are row r and row r + 1.
template <class T, int R>
K3_INLINE void score_rows(const typename T::value* row, int64_t stride, int64_t width,
                          const typename T::value* queries, float* scores) {
    constexpr int64_t step = 2 * T::PER_LANE;
    Sums acc[R] = {};
    int64_t c = 0;
    const char* next = reinterpret_cast<const char*>(row) + ROWS_AHEAD_BYTES;
    for (; c + step <= width; c += step, next += 64) {
        Words q = words(queries + c * HEADS);
        if constexpr (R == HEADS) __builtin_prefetch(next, 0, 2);
        K3_ONCE(q);
        for (int r = 0; r < R; ++r)
            acc[r] = T::dot(acc[r], eight_times(row + r * stride + c), q);
    }
    // Unrolled, or all sums would lie in memory for its sake.
    if (c < width)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            typename T::value piece[step] = {};
            std::memcpy(piece, row + r * stride + c, (width - c) * sizeof *row);
            acc[r] = T::dot(acc[r], eight_times(piece), words(queries + c * HEADS));
        }
#pragma GCC unroll 4
    for (int r = 0; r < R; r += 2) {
        const Sums a = acc[r], b = acc[r + 1];
        put(scores + r * HEADS,
            __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12,
                                    28, 14, 30) +
                __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27,
                                        13, 29, 15, 31));
    }
}

// Scores of `count` rows, -inf behind an odd one.
template <class T>
void score(const typename T::value* rows, int64_t count, int64_t width,
              const typename T::value* queries, float* scores) {
    int64_t r = 0;
    for (; r + 8 <= count; r += 8)
        score_rows<T, 8>(rows + r * width, width, width, queries, scores + r * HEADS);
    for (; r < count; r += 2) {
        const int64_t stride = r + 1 < count ? width : 0;
        score_rows<T, 2>(rows + r * width, stride, width, queries, scores + r * HEADS);
        if (!stride)
            for (int h = 0; h < HEADS; ++h) scores[r * HEADS + 2 * h + 1] = -INFINITY;
    }
}

// What a row weighs beside the greatest score so far, rounded as PyTorch's path stores
// it; `most`, `total` and `latent` are what the heads have read.
template <class T>
void weigh(const float* scores, int64_t pairs, float scale, int64_t size,
           typename T::value* weights, float* most, float* total, float* latent) {
    Sums top = floats(most);
    for (int64_t i = 0; i < pairs; ++i) {
        const Sums s = floats(scores + i * PAIR);
        top = s > top ? s : top;
    }
    const Sums other = __builtin_shufflevector(top, top, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8,
                                               11, 10, 13, 12, 15, 14);
    top = other > top ? other : top;
    float now[PAIR];
    put(now, top);
    for (int h = 0; h < HEADS; ++h) {
        if (!(now[2 * h] > most[2 * h])) continue;
        const float kept = std::exp((most[2 * h] - now[2 * h]) * scale);
        total[2 * h] *= kept;
        total[2 * h + 1] *= kept;
        float* mine = latent + h * size;
        over(size, [&](int64_t i, int64_t n) {
            store_n(mine + i, load_n(mine + i, n) * kept, n);
        });
    }
    put(most, top);
    for (int64_t j = 0; j < PAIR; j += W) {
        const vec greatest = load(now + j);
        vec all = load(total + j);
        for (int64_t i = j; i < pairs * PAIR; i += PAIR) {
            store_short(weights + i, exp_down((load(scores + i) - greatest) * scale));
            all += load(weights + i);
        }
        store(total + j, all);
    }
}

// acc[h][v] += weights[h] of row a and of row b times 16 values of each.
template <class T, int V>
K3_INLINE void add_pair(Sums (*acc)[V], const typename T::value* a,
                        const typename T::value* b, const typename T::value* weights) {
#if defined(__AVX512BF16__)
    if constexpr (std::is_same_v<T, Bf16> && V == 2) {
        const __m512i low = _mm512_set_epi16(
            47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
            37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
        const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
        const __m512i x = (__m512i)words(a), y = (__m512i)words(b);
        const Words row[2] = {(Words)_mm512_permutex2var_epi16(x, low, y),
                              (Words)_mm512_permutex2var_epi16(x, high, y)};
        for (int h = 0; h < HEADS; ++h) {
            int32_t two;
            std::memcpy(&two, weights + 2 * h, sizeof two);
            const Words p = (Words)_mm512_set1_epi32(two);
            for (int v = 0; v < 2; ++v) acc[h][v] = T::dot(acc[h][v], row[v], p);
        }
        return;
    }
#endif
    for (int s = 0; s < 2; ++s) {
        Sums row[V];
        for (int v = 0; v < V; ++v) row[v] = T::row((s ? b : a) + v * LANES);
        for (int h = 0; h < HEADS; ++h)
            for (int v = 0; v < V; ++v) acc[h][v] += row[v] * widen(weights[2 * h + s]);
    }
}

// out[h][c] += the sum over pairs of rows of weights[pair][h] rows[c].
template <class T, int V>
K3_INLINE void add_columns(const typename T::value* rows, int64_t count, int64_t ld,
                           const typename T::value* weights, float* out, int64_t ldo) {
    Sums acc[HEADS][V];
    for (int h = 0; h < HEADS; ++h)
        for (int v = 0; v < V; ++v) acc[h][v] = floats(out + h * ldo + v * LANES);
    for (int64_t r = 0; r < count; r += 2, weights += PAIR) {
        const auto* a = rows + r * ld;
        const auto* b = r + 1 < count ? a + ld : a;
        add_pair<T, V>(acc, a, b, weights);
    }
    for (int h = 0; h < HEADS; ++h)
        for (int v = 0; v < V; ++v) put(out + h * ldo + v * LANES, acc[h][v]);
}

// out[h][c] += the sum over rows r of weights[r][h] rows[r][c], c below width.
template <class T>
void add_rows(const typename T::value* rows, int64_t count, int64_t ld,
              const typename T::value* weights, float* out, int64_t ldo,
              int64_t width) {
    int64_t c = 0;
    for (; c + 2 * LANES <= width; c += 2 * LANES)
        add_columns<T, 2>(rows + c, count, ld, weights, out + c, ldo);
    for (; c + LANES <= width; c += LANES)
        add_columns<T, 1>(rows + c, count, ld, weights, out + c, ldo);
    for (; c < width; ++c)
        for (int h = 0; h < HEADS; ++h)
            for (int64_t r = 0; r < count; ++r)
                out[h * ldo + c] += widen(rows[r * ld + c]) *
                                    widen(weights[r / 2 * PAIR + 2 * h + r % 2]);
}

}  // namespace k3
