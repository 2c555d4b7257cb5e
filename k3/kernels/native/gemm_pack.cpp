// Panels of rows of a matrix: fp32, bf16 and MXFP4 become fp32 exactly, or bf16 in pairs.
// See __AVX512BF16__ in lanes.h.
#include "gemm.h"
#include "mx.h"
#include "transpose.h"

namespace k3 {
namespace gemm {

namespace {

// Values of a row from what is turned to what is asked for: of so many rows at once the
// processor foresees nothing.
constexpr int64_t AHEAD = 8 * W;

// Some columns of a row, P of them in each lane, and zeros behind them.
template <int64_t P, class S>
inline vec taken(const S* row, int64_t n) {
    if constexpr (P == 1) {
        return load_n(row, n);
    } else {
        S lanes[P * W] = {};
        vec x;
        if (n < P * W)
            row = static_cast<S*>(std::memcpy(lanes, row, n * sizeof(S)));
        std::memcpy(&x, row, sizeof x);
        return x;
    }
}

// Squares of R rows by W lanes are turned in registers; `put` takes one lane of all.
template <int64_t R, int64_t P, class S, class Put>
inline void turn(const S* const* rows, int64_t depth, int64_t ahead, Put&& put) {
    auto some = [&](int64_t c, int64_t n) {
        vec square[W] = {};
#pragma GCC unroll 16
        for (int64_t i = 0; i < R; ++i) {
            __builtin_prefetch(rows[i] + c + ahead, 0, 2);
            square[i] = taken<P>(rows[i] + c, n);
        }
        transpose(square);
#pragma GCC unroll 16
        for (int64_t j = 0; j < W; ++j)
            if (P * j < n) put(c / P + j, square[j]);
    };
    int64_t c = 0;
    for (; c + P * W <= depth; c += P * W) some(c, P * W);
    if (c < depth) some(c, depth - c);
}

template <int64_t P, class S>
void dense(const S* w, int64_t pitch, int64_t count, int64_t depth, float* panel) {
    for (int64_t r = 0; r < COLS; r += W) {
        const S* rows[W];
        for (int64_t i = 0; i < W; ++i)
            rows[i] = w + (r + i < count ? r + i : 0) * pitch;
        turn<W, P>(rows, depth, COLS * pitch,
                   [&](int64_t c, vec x) { store(panel + c * COLS + r, x); });
    }
}

// Rows of MXFP4 codes, `pitch` values from one to the next.
struct Codes {
    const uint8_t *bytes, *scale;
    int64_t pitch;

    const uint8_t* at(int64_t row, int64_t c) const {
        return bytes + (row * pitch + c) / 2;
    }
    float factor(int64_t row, int64_t c) const {
        return E8M0[scale[(row * pitch + c) / GROUP]];
    }
};

#if defined(__AVX512F__)
// Of eight codes in each lane number j, or the two of byte j, times a scale.
template <int64_t P>
K3_INLINE vec decoded(Words eight, int j, Sums factor) {
    if constexpr (P == 1) {
        return (vec)((Sums)mx_values<Fp32>(eight >> 4 * j) * factor);
    } else {
        // That byte everywhere, then its upper code down in the upper halves.
        const __m512i first = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
        const __m512i byte = _mm512_add_epi8(first, _mm512_set1_epi8(j));
        const __m512i both = _mm512_shuffle_epi8((__m512i)eight, byte);
        const __m512i down = _mm512_set1_epi32(0x00040000);
        const Words pairs = mx_values<Bf16>((Words)_mm512_srlv_epi16(both, down));
        // Exact in bf16, so that upper halves are the values.
        const Sums low = even(pairs) * factor, high = odd(pairs) * factor;
        return (vec)((Words)((UWords)low >> 16) |
                     ((Words)high & static_cast<int32_t>(0xffff0000)));
    }
}

// Sixteen rows by some groups of a block: a word of each row holds eight codes.
template <int64_t P>
void decode_block(const Codes& w, int64_t count, int64_t begin, int64_t groups,
                  float* panel) {
    vec square[W];
    alignas(64) float factors[MX_BLOCK / GROUP][W];
#pragma GCC unroll 16
    for (int64_t i = 0; i < W; ++i) {
        const int64_t row = i < count ? i : 0;
        const uint8_t* at = w.at(row, begin);
        __builtin_prefetch(at + COLS * w.pitch / 2, 0, 2);
        square[i] = (vec)(groups == MX_BLOCK / GROUP ? words(at)
                                                     : words_part(at, groups * 16));
        for (int64_t g = 0; g < groups; ++g)
            factors[g][i] = w.factor(row, begin + g * GROUP);
    }
    transpose(square);
    constexpr int STEPS = 8 / P;
#pragma GCC unroll 1
    for (int64_t i = 0; i < groups * 4; ++i) {
        const Sums factor = floats(factors[i / 4]);
        for (int j = 0; j < STEPS; ++j)
            store(panel + (STEPS * i + j) * COLS,
                  decoded<P>((Words)square[i], j, factor));
    }
}

template <int64_t P>
void coded(const Codes& w, int64_t count, int64_t begin, int64_t depth, float* panel) {
    for (int64_t c = 0; c < depth; c += MX_BLOCK)
        for (int64_t r = 0; r < COLS; r += W) {
            const int64_t first = (r < count ? r : 0) * w.pitch;
            const int64_t some = least(MX_BLOCK, depth - c);
            const Codes rows{w.bytes + first / 2, w.scale + first / GROUP, w.pitch};
            decode_block<P>(rows, least(W, count - r), begin + c, some / GROUP,
                            panel + c / P * COLS + r);
        }
}
#else
// Both values of every byte.
struct Pairs {
    float of[256][2];
    Pairs() {
        const float sizes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
        auto value = [&](int c) { return c & 8 ? -sizes[c & 7] : sizes[c]; };
        for (int b = 0; b < 256; ++b) {
            of[b][0] = value(b & 15);
            of[b][1] = value(b >> 4);
        }
    }
};

template <int64_t>
void coded(const Codes& w, int64_t count, int64_t begin, int64_t depth, float* panel) {
    static const Pairs pairs;
    float block[COLS * MX_BLOCK];
    for (int64_t c = 0; c < depth; c += MX_BLOCK) {
        const int64_t some = least(MX_BLOCK, depth - c);
        for (int64_t r = 0; r < count; ++r)
            for (int64_t i = 0; i < some; i += 2) {
                const float factor = w.factor(r, begin + c + i);
                const float* pair = pairs.of[*w.at(r, begin + c + i)];
                block[r * MX_BLOCK + i] = pair[0] * factor;
                block[r * MX_BLOCK + i + 1] = pair[1] * factor;
            }
        dense<1>(block, MX_BLOCK, count, some, panel + c * COLS);
    }
}
#endif

}  // namespace

template <class T>
void pack_w(const Source& w, int64_t first, int64_t begin, int64_t depth,
            float* panel) {
    const int64_t count = least(COLS, w.rows - first), at = first * w.pitch;
    if (w.form == MXFP4) {
        auto* bytes = static_cast<const uint8_t*>(w.data);
        coded<PER<T>>({bytes + at / 2, w.scale + at / GROUP, w.pitch}, count, begin,
                      depth, panel);
    } else if (w.form == BF16) {
        dense<PER<T>>(static_cast<const bf16*>(w.data) + at + begin, w.pitch, count,
                      depth, panel);
    } else {
        if constexpr (PER<T> == 1)
            dense<1>(static_cast<const float*>(w.data) + at + begin, w.pitch, count,
                     depth, panel);
    }
}

template <class T>
void pack_x(const Rows<T>& x, int64_t first, int64_t begin, int64_t depth,
            float* panel) {
    const typename T::value* rows[ROWS];
    for (int64_t i = 0; i < ROWS; ++i) {
        const int64_t row = first + i < x.count ? first + i : first;
        rows[i] = x.x + (x.which ? x.which[row] : row) * x.pitch + begin;
    }
    turn<ROWS, PER<T>>(rows, depth, AHEAD, [&](int64_t c, vec column) {
        std::memcpy(panel + c * ROWS, &column, ROWS * sizeof(float));
    });
}

#define K3_FOR(T)                                                              \
    template void pack_w<T>(const Source&, int64_t, int64_t, int64_t, float*); \
    template void pack_x<T>(const Rows<T>&, int64_t, int64_t, int64_t, float*);
K3_FOR(Fp32)
K3_FOR(Bf16)

}  // namespace gemm
}  // namespace k3
