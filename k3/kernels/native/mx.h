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

}  // namespace k3
