// MXFP4 rows: their order, their values and their scales. E2M1 codes are exact in both
// dtypes, a group's sum meets its E8M0 scale in fp32.
//
// A block is 64 bytes: 128 values, 4 groups. Read as lanes of 32 bits, four lanes hold
// one group, and shifting all lanes by four bits brings up the next code of each. x is
// arranged to match: of each 128 values, those that one shift brings up lie together.
#pragma once
#include "product.h"

namespace k3 {

constexpr int64_t GROUP = 32, MX_BLOCK = 128, MX_BYTES = MX_BLOCK / 2;
// Columns up to which there is room for decoded rows.
constexpr int64_t MX_COLUMNS = 8192;
// The value 2^(e - 127) of every scale byte, 255 being NaN.
extern const float* const E8M0;

// Columns with the zeros that fill the last block.
K3_INLINE int64_t mx_columns(int64_t cols) {
    return (cols + MX_BLOCK - 1) / MX_BLOCK * MX_BLOCK;
}

// How many shifts bring up all codes of a block: 8 lanes' worth in fp32, 4 in bf16.
template <class T>
constexpr int MX_SHIFTS = 8 / static_cast<int>(T::PER_LANE);

// A row of x, padded to whole blocks, as products take it.
template <class T>
K3_INLINE void mx_arrange(typename T::value* x, int64_t cols) {
    constexpr int P = MX_SHIFTS<T>, each = MX_BLOCK / P;
    for (int64_t c = 0; c < cols; c += MX_BLOCK) {
        typename T::value block[MX_BLOCK];
        for (int i = 0; i < each; ++i)
            for (int j = 0; j < P; ++j) block[each * j + i] = x[c + P * i + j];
        std::memcpy(x + c, block, sizeof block);
    }
}

// The values of the lowest code of each lane (bf16: of each half lane).
template <class T>
K3_INLINE Words mx_values(Words codes) {
#if defined(__AVX512F__)
    // The index has a fifth bit for halves, so that table stands there twice.
    alignas(64) static const uint16_t halves[32] = {
        0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0,
        0x8000, 0xbf00, 0xbf80, 0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0,
        0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0,
        0x8000, 0xbf00, 0xbf80, 0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0};
    alignas(64) static const float whole[16] = {
        0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
        -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
    if constexpr (T::PER_LANE == 1)
        return (Words)_mm512_permutexvar_ps((__m512i)codes, _mm512_load_ps(whole));
    else
        return (Words)_mm512_permutexvar_epi16((__m512i)codes,
                                               _mm512_load_si512(halves));
#else
    static const uint32_t sizes[8] = {0x0000, 0x3f00, 0x3f80, 0x3fc0,
                                      0x4000, 0x4040, 0x4080, 0x40c0};
    Words y;
    for (int i = 0; i < 16; ++i) {
        auto code = static_cast<uint32_t>(codes[i]);
        uint32_t low = sizes[code & 7] | (code & 8) << 12;
        uint32_t high = sizes[code >> 16 & 7] | (code >> 16 & 8) << 12;
        y[i] = static_cast<int32_t>(T::PER_LANE == 1 ? low << 16 : high << 16 | low);
    }
    return y;
#endif
}

// The scales of a block's groups, each on four lanes; those past `groups` are 1.
K3_INLINE Sums mx_scales(const uint8_t* scale, int64_t groups) {
    uint32_t bytes = 0x7f7f7f7f;
    if (groups >= 4) std::memcpy(&bytes, scale, 4);
    else std::memcpy(&bytes, scale, static_cast<size_t>(groups));
#if defined(__AVX512F__)
    // 2^-127 is half of the least normal number, 255 is NaN.
    const __m128i half = _mm_set1_epi32(0x00400000);
    __m128i e = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(static_cast<int>(bytes)));
    __m128i bits = _mm_max_epu32(_mm_slli_epi32(e, 23), half);
    __mmask8 nan = _mm_cmpeq_epi32_mask(e, _mm_set1_epi32(255));
    bits = _mm_mask_or_epi32(bits, nan, bits, half);
    const __m512i spread =
        _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return (Sums)_mm512_permutexvar_epi32(spread, _mm512_castsi128_si512(bits));
#else
    Sums y;
    for (int i = 0; i < 16; ++i) y[i] = E8M0[bytes >> i / 4 * 8 & 255];
    return y;
#endif
}

// The values of a row in the order of mx_arrange, zeros in the rest of the last block.
template <class T>
K3_INLINE void mx_decode(const uint8_t* w, const uint8_t* scale, int64_t cols,
                         typename T::value* row) {
    constexpr int P = MX_SHIFTS<T>, each = MX_BLOCK / P;
    for (int64_t c = 0; c < cols; c += MX_BLOCK) {
        const bool whole = c + MX_BLOCK <= cols;
        Words codes = whole ? words(w + c / 2) : words_part(w + c / 2, (cols - c) / 2);
        Sums factors = mx_scales(scale + c / GROUP, whole ? 4 : (cols - c) / GROUP);
        for (int j = 0; j < P; ++j) {
            Words values = mx_values<T>(codes >> 4 * j);
            if constexpr (T::PER_LANE == 1) {
                put(row + c + each * j, (Sums)values * factors);
            } else {
                // Exact in bf16, so that upper halves are the values.
                Sums low = even(values) * factors, high = odd(values) * factors;
                Words both = (Words)((UWords)low >> 16) |
                             ((Words)high & static_cast<int32_t>(0xffff0000));
                std::memcpy(row + c + each * j, &both, sizeof both);
            }
        }
    }
}

// Four rows of W at a time, decoded once for all of x.
template <class T>
void mx_decoded(const uint8_t* w, const uint8_t* scale, int64_t begin, int64_t end,
                int64_t cols, const typename T::value* x, int64_t batch, float* y,
                int64_t ldy) {
    alignas(64) static thread_local typename T::value rows[4 * MX_COLUMNS];
    const int64_t wide = mx_columns(cols);
    for (int64_t r = begin; r < end; r += 4) {
        const int64_t count = end - r < 4 ? end - r : 4;
        for (int64_t q = 0; q < count; ++q)
            mx_decode<T>(w + (r + q) * cols / 2, scale + (r + q) * cols / GROUP, cols,
                         rows + q * wide);
        product<T>(rows, 0, count, wide, x, batch, y + r, ldy);
    }
}

}  // namespace k3
