// Products of few rows of x with MXFP4 rows, straight from the packed bytes.
//
// Four rows of W go side by side. A block of each is summed group by group; of the four
// sums one vector is made, lane 4g + r being group g of row r, and meets the sixteen
// scales in one product. So short rows cost little more than long ones.
#pragma once
#include "mx.h"

namespace k3 {

// Bytes of rows that stay in the first cache while rows of x pass by, and bytes from
// them to what is asked for.
constexpr int64_t MX_CHUNK = 8192, MX_AHEAD = 8192;

// Bytes and scales at one place of a matrix.
struct MxPlace {
    const uint8_t *w, *scale;
};

#if defined(__AVX512F__)
constexpr int64_t MX_PAIR = 2 * MX_BLOCK;

// Lane 4g + r: the sum of lanes 4g .. 4g + 3 of vector r.
K3_INLINE Sums mx_groups(const Sums* part) {
    auto pair = [](Sums x, Sums y) {
        auto a = (__m512)x, b = (__m512)y;
        return _mm512_add_ps(_mm512_mask_blend_ps(0xcccc, a, b),
                             _mm512_shuffle_ps(a, b, 0x4e));
    };
    __m512 low = pair(part[0], part[1]), high = pair(part[2], part[3]);
    return (Sums)_mm512_add_ps(_mm512_shuffle_ps(low, high, 0x88),
                               _mm512_shuffle_ps(low, high, 0xdd));
}

// The scales of four rows in two blocks of `left` columns, in the order of mx_groups.
K3_INLINE void mx_factors(const uint8_t* scale, int64_t lds, int64_t left,
                          Sums* factors) {
    auto row = [&](int r) {
        auto* at = reinterpret_cast<const __m128i*>(scale + r * lds);
        if (__builtin_expect(left >= MX_PAIR, 1)) return _mm_loadl_epi64(at);
        return _mm_maskz_loadu_epi8((1u << left / GROUP) - 1, at);
    };
    auto low = (__m128)_mm_unpacklo_epi64(row(0), row(1));
    auto high = (__m128)_mm_unpacklo_epi64(row(2), row(3));
    const __m128i turn =
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i all = _mm256_shuffle_epi8(
        _mm256_set_m128i((__m128i)_mm_shuffle_ps(low, high, 0xdd),
                         (__m128i)_mm_shuffle_ps(low, high, 0x88)),
        _mm256_broadcastsi128_si256(turn));
    // Bit 22 makes 2^-127 of byte 0, half of the least normal number, and NaN of 255.
    const __m256i one = _mm256_set1_epi8(1), next = _mm256_add_epi8(all, one);
    const __m256i edge = _mm256_cmpeq_epi8(_mm256_min_epu8(next, one), next);
    const __m256i bit = _mm256_and_si256(edge, _mm256_set1_epi8(-128));
    const __m256i even = _mm256_unpacklo_epi8(bit, all);
    const __m256i odd = _mm256_unpackhi_epi8(bit, all);
    auto widened = [](__m256i x) {
        return (Sums)_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 15);
    };
    factors[0] = widened(_mm256_permute2x128_si256(even, odd, 0x20));
    factors[1] = widened(_mm256_permute2x128_si256(even, odd, 0x31));
}

// A block of four rows, of `left` columns, by N rows of x: what each lane adds up to.
template <class T, int N>
K3_INLINE void mx_block(const uint8_t* w, int64_t ldw, int64_t left,
                        const typename T::value* x, int64_t ldx, Sums (*part)[4]) {
    constexpr int P = MX_SHIFTS<T>, each = MX_BLOCK / P;
    Words codes[4];
    if (__builtin_expect(left >= MX_BLOCK, 1)) {
        for (int r = 0; r < 4; ++r) codes[r] = words(w + r * ldw);
    } else {
        const __mmask64 bytes = (1ull << left / 2) - 1;
        for (int r = 0; r < 4; ++r)
            codes[r] = (Words)_mm512_maskz_loadu_epi8(bytes, w + r * ldw);
    }
    for (int n = 0; n < N; ++n)
        for (int r = 0; r < 4; ++r) part[n][r] = Sums{};
#pragma GCC unroll 8
    for (int j = 0; j < P; ++j) {
        Words values[4];
        for (int r = 0; r < 4; ++r) values[r] = mx_values<T>(codes[r] >> 4 * j);
        for (int n = 0; n < N; ++n) {
            Words b = words(x + n * ldx + each * j);
            K3_ONCE(b);
            for (int r = 0; r < 4; ++r) part[n][r] = T::dot(part[n][r], values[r], b);
        }
    }
}

// Adds what the groups of a block of four rows come to.
template <int N>
K3_INLINE void mx_add(Sums (*part)[4], Sums factors, Sums* acc) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) acc[n] += mx_groups(part[n]) * factors;
}

// Two blocks of four rows, ld bytes and lds scales apart, of which `left` columns are
// there, by N rows of x.
template <class T, int N>
K3_INLINE void mx_pair(MxPlace at, int64_t ld, int64_t lds, int64_t left,
                       const typename T::value* x, int64_t ldx, Sums* acc) {
    const uint8_t* second = at.w + MX_BYTES;
    Sums factors[2], part[N][4];
    mx_factors(at.scale, lds, left, factors);
    mx_block<T, N>(at.w, ld, left, x, ldx, part);
    if constexpr (N <= 2) {
        // Both blocks are multiplied before the first is summed up: the processor need
        // not look as far ahead.
        Sums other[N][4] = {};
        if (left > MX_BLOCK)
            mx_block<T, N>(second, ld, left - MX_BLOCK, x + MX_BLOCK, ldx, other);
#pragma GCC unroll 8
        for (int i = 0; i < 4 * N; ++i) {
            K3_ONCE(part[i / 4][i % 4]);
            K3_ONCE(other[i / 4][i % 4]);
        }
        mx_add<N>(part, factors[0], acc);
        mx_add<N>(other, factors[1], acc);
    } else {
        mx_add<N>(part, factors[0], acc);
        if (left <= MX_BLOCK) return;
        mx_block<T, N>(second, ld, left - MX_BLOCK, x + MX_BLOCK, ldx, part);
        mx_add<N>(part, factors[1], acc);
    }
}

// y[n][r] of four rows by N rows of x, or where `rows` is 1 of the first alone. What
// lies `ahead` of their bytes and scales is asked for.
template <class T, int N>
K3_INLINE void mx_four(MxPlace at, int64_t ld, int64_t lds, int64_t cols,
                       const typename T::value* x, int64_t ldx, const int64_t* ahead,
                       float* y, int64_t ldy, int rows) {
    Sums acc[N] = {};
    int64_t c = 0;
    for (; c + MX_PAIR <= cols; c += MX_PAIR) {
        for (int i = 0; i < 8; ++i)
            __builtin_prefetch(at.w + 2 * c + 64 * i + ahead[0], 0, 2);
        __builtin_prefetch(at.scale + (c >> 3) + ahead[1], 0, 2);
        mx_pair<T, N>({at.w + (c >> 1), at.scale + (c >> 5)}, ld, lds, MX_PAIR, x + c,
                      ldx, acc);
    }
    if (__builtin_expect(c < cols, 0))
        mx_pair<T, N>({at.w + (c >> 1), at.scale + (c >> 5)}, ld, lds, cols - c, x + c,
                      ldx, acc);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
        auto all = (__m512)acc[n];
        __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all),
                                    _mm512_extractf32x8_ps(all, 1));
        __m128 sums = _mm_add_ps(_mm256_castps256_ps128(half),
                                 _mm256_extractf128_ps(half, 1));
        if (__builtin_expect(rows == 4, 1)) _mm_storeu_ps(y + n * ldy, sums);
        else _mm_store_ss(y + n * ldy, sums);
    }
}

#else
// The scales of a block's groups, each on four lanes; those past `groups` are 1.
K3_INLINE Sums mx_scales(const uint8_t* scale, int64_t groups) {
    Sums y;
    for (int i = 0; i < 16; ++i) y[i] = i / 4 < groups ? E8M0[scale[i / 4]] : 1.0f;
    return y;
}

// A row by N rows of x; a lane's sum is of one block, then of blocks.
template <class T, int N>
K3_INLINE void mx_one(MxPlace at, int64_t cols, const typename T::value* x, int64_t ldx,
                      float* y, int64_t ldy) {
    constexpr int P = MX_SHIFTS<T>, each = MX_BLOCK / P;
    Sums acc[N] = {};
    for (int64_t c = 0; c < cols; c += MX_BLOCK) {
        const bool whole = c + MX_BLOCK <= cols;
        const uint8_t* w = at.w + c / 2;
        Words codes = whole ? words(w) : words_part(w, (cols - c) / 2), values[P];
        Sums factors =
            mx_scales(at.scale + c / GROUP, whole ? 4 : (cols - c) / GROUP);
        for (int j = 0; j < P; ++j) values[j] = mx_values<T>(codes >> 4 * j);
        for (int n = 0; n < N; ++n) {
            Sums part = {};
            for (int j = 0; j < P; ++j)
                part = T::dot(part, values[j], words(x + n * ldx + c + each * j));
            acc[n] += part * factors;
        }
    }
    for (int n = 0; n < N; ++n) y[n * ldy] = total(acc[n]);
}

template <class T, int N>
K3_INLINE void mx_four(MxPlace at, int64_t ld, int64_t lds, int64_t cols,
                       const typename T::value* x, int64_t ldx, const int64_t*,
                       float* y, int64_t ldy, int rows) {
    for (int r = 0; r < rows; ++r)
        mx_one<T, N>({at.w + r * ld, at.scale + r * lds}, cols, x, ldx, y + r, ldy);
}
#endif

// `count` rows of W by N rows of x, four at a time or, where `step` is 1, each as four
// times itself.
template <class T, int N>
void mx_some(MxPlace at, int64_t count, int step, int64_t cols,
             const typename T::value* x, int64_t ldx, const int64_t* ahead, float* y,
             int64_t ldy) {
    const int64_t ld = cols >> 1, lds = cols >> 5, far[] = {ahead[0], ahead[1]};
    const int64_t apart = step == 4 ? ld : 0, scales = step == 4 ? lds : 0;
    for (; count > 0; count -= step) {
        mx_four<T, N>(at, apart, scales, cols, x, ldx, far, y, ldy, step);
        at = {at.w + step * ld, at.scale + step * lds};
        y += step;
    }
}

// y[n][r] = x[n] . W[r] for rows begin..end of an MXFP4 matrix; rows of x are padded to
// whole blocks and arranged. Towards the end what lies at `after` is asked for.
template <class T>
void mx_product(MxPlace matrix, int64_t begin, int64_t end, int64_t cols,
                const typename T::value* x, int64_t batch, float* y, int64_t ldy,
                MxPlace after) {
    const int64_t ldx = pitch<T>(mx_columns(cols)), ld = cols / 2, lds = cols / GROUP;
    const int64_t some = MX_CHUNK / (4 * ld + 1) * 4 + 4;
    const int64_t ahead = MX_AHEAD / (ld + 1) + 4;
    for (int64_t r = begin; r < end; r += some) {
        const MxPlace at{matrix.w + r * ld, matrix.scale + r * lds};
        const int64_t count = end - r < some ? end - r : some, whole = count / 4 * 4;
        int64_t far[2] = {ahead * ld, ahead * lds};
        if (r + ahead >= end) {
            far[0] += after.w - (matrix.w + end * ld);
            far[1] += after.scale - (matrix.scale + end * lds);
        }
        parts(batch, [&](auto height, int64_t n) {
            constexpr int N = decltype(height)::value;
            auto run = [&](int64_t first, int64_t rows, int step) {
                mx_some<T, N>({at.w + first * ld, at.scale + first * lds}, rows, step,
                              cols, x + n * ldx, ldx, far, y + n * ldy + r + first,
                              ldy);
            };
            run(0, whole, 4);
            if (whole < count) run(whole, count - whole, 1);
        });
    }
}

}  // namespace k3
