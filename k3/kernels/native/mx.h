// Products with MXFP4 rows, straight from the packed bytes: E2M1 codes are exact in
// bf16, a group's sum meets its E8M0 scale in fp32.
#pragma once
#include "product.h"

namespace k3 {

constexpr int64_t GROUP = 32;

// The value 2^(e - 127) of every scale byte, 255 being NaN.
extern const float* const E8M0;
// The two bf16 values of every byte, the low nibble's in the low half.
extern const uint32_t* const E2M1_PAIRS;

// The 32 values of a group of 16 bytes, two bf16 a lane.
K3_INLINE Words mx_pairs(const uint8_t* p) {
#if defined(__AVX512F__)
    // Codes of both nibbles in the low bits of the halves; a fifth bit is read as well,
    // so the table stands there twice.
    alignas(64) static const uint16_t table[32] = {
        0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0,
        0x8000, 0xbf00, 0xbf80, 0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0,
        0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0,
        0x8000, 0xbf00, 0xbf80, 0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0};
    __m512i b =
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    __m512i codes = _mm512_or_si512(b, _mm512_slli_epi32(b, 12));
    return (Words)_mm512_permutexvar_epi16(codes, _mm512_load_si512(table));
#else
    Words y;
    for (int i = 0; i < 16; ++i) y[i] = static_cast<int32_t>(E2M1_PAIRS[p[i]]);
    return y;
#endif
}

// What x must look like: fp32 rows hold, of each 32 values, the even ones first.
template <class T>
K3_INLINE void mx_arrange(float* x, int64_t cols) {
    if constexpr (T::PER_LANE == 1)
        for (int64_t c = 0; c < cols; c += GROUP) {
            float group[GROUP];
            for (int i = 0; i < 16; ++i) {
                group[i] = x[c + 2 * i];
                group[16 + i] = x[c + 2 * i + 1];
            }
            std::memcpy(x + c, group, sizeof group);
        }
}

template <class T>
K3_INLINE Sums mx_group(Words w, const typename T::value* x) {
    if constexpr (T::PER_LANE == 1)
        return even(w) * floats(x) + odd(w) * floats(x + 16);
    else return T::dot(Sums{}, w, words(x));
}

template <class T, int N>
K3_INLINE void mx_row(const uint8_t* w, const uint8_t* scale, int64_t cols,
                      const typename T::value* x, Sums* sums) {
    const int64_t ldx = pitch<T>(cols);
    Sums acc[N] = {};
    for (int64_t g = 0; g < cols / GROUP; ++g) {
        Words pairs = mx_pairs(w + 16 * g);
        float factor = E8M0[scale[g]];
        for (int n = 0; n < N; ++n)
            acc[n] += mx_group<T>(pairs, x + n * ldx + GROUP * g) * factor;
    }
    for (int n = 0; n < N; ++n) sums[n] = acc[n];
}

// The values of a row, in the order of mx_arrange.
template <class T>
K3_INLINE void mx_decode(const uint8_t* w, const uint8_t* scale, int64_t cols,
                         typename T::value* row) {
    for (int64_t g = 0; g < cols / GROUP; ++g) {
        Words pairs = mx_pairs(w + 16 * g);
        Sums low = even(pairs) * E8M0[scale[g]], high = odd(pairs) * E8M0[scale[g]];
        if constexpr (T::PER_LANE == 1) {
            put(row + GROUP * g, low);
            put(row + GROUP * g + 16, high);
        } else {
            // Exact in bf16, so that the upper halves are the values.
            Words both = (Words)((UWords)low >> 16) |
                         ((Words)high & static_cast<int32_t>(0xffff0000));
            std::memcpy(row + GROUP * g, &both, sizeof both);
        }
    }
}

// Columns up to which there is room for decoded rows.
constexpr int64_t MX_COLUMNS = 8192;

// Four rows of W at a time, decoded once for all of x.
template <class T>
void mx_decoded(const uint8_t* w, const uint8_t* scale, int64_t begin, int64_t end,
                int64_t cols, const typename T::value* x, int64_t batch, float* y,
                int64_t ldy) {
    alignas(64) static thread_local typename T::value rows[4 * MX_COLUMNS];
    for (int64_t r = begin; r < end; r += 4) {
        const int64_t count = end - r < 4 ? end - r : 4;
        for (int64_t q = 0; q < count; ++q)
            mx_decode<T>(w + (r + q) * cols / 2, scale + (r + q) * cols / GROUP, cols,
                         rows + q * cols);
        product<T>(rows, 0, count, cols, x, batch, y + r, ldy);
    }
}

// y[n][r] = x[n] . W[r] for rows begin..end of an MXFP4 matrix; x as for product(),
// arranged by mx_arrange before it was packed.
template <class T>
void mx_product(const uint8_t* w, const uint8_t* scale, int64_t begin, int64_t end,
                int64_t cols, const typename T::value* x, int64_t batch, float* y,
                int64_t ldy) {
    const int64_t ldx = pitch<T>(cols);
    for (int64_t r = begin; r < end; r += 4) {
        const int count = static_cast<int>(end - r < 4 ? end - r : 4);
        parts(batch, [&](auto some, int64_t n) {
            constexpr int N = decltype(some)::value;
            Sums four[N][4] = {};
            for (int q = 0; q < count; ++q) {
                Sums sums[N];
                mx_row<T, N>(w + (r + q) * cols / 2, scale + (r + q) * cols / GROUP,
                             cols, x + n * ldx, sums);
                for (int m = 0; m < N; ++m) four[m][q] = sums[m];
            }
            for (int m = 0; m < N; ++m) {
                float found[4];
                total4(four[m], found);
                std::memcpy(y + (n + m) * ldy + r, found,
                            static_cast<size_t>(count) * sizeof(float));
            }
        });
    }
}

}  // namespace k3
