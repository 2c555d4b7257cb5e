// Panels of rows of a matrix: fp32, bf16 and MXFP4 become fp32 exactly.
#include "gemm.h"
#include "mx.h"
#include "transpose.h"

namespace k3 {
namespace gemm {

namespace {

// Values of a row from what is turned to what is asked for: of so many rows at once the
// processor foresees nothing.
constexpr int64_t AHEAD = 8 * W;

// Squares of R rows by W columns are turned in registers; `put` takes one column.
template <int64_t R, class T, class Put>
inline void turn(const T* const* rows, int64_t depth, Put&& put) {
    auto some = [&](int64_t c, int64_t n) {
        vec square[W] = {};
#pragma GCC unroll 16
        for (int64_t i = 0; i < R; ++i) {
            __builtin_prefetch(rows[i] + c + AHEAD, 0, 2);
            square[i] = load_n(rows[i] + c, n);
        }
        transpose(square);
#pragma GCC unroll 16
        for (int64_t j = 0; j < W; ++j)
            if (j < n) put(c + j, square[j]);
    };
    int64_t c = 0;
    for (; c + W <= depth; c += W) some(c, W);
    if (c < depth) some(c, depth - c);
}

template <class T>
void dense(const T* w, int64_t pitch, int64_t count, int64_t depth, float* panel) {
    for (int64_t r = 0; r < COLS; r += W) {
        const T* rows[W];
        for (int64_t i = 0; i < W; ++i)
            rows[i] = w + (r + i < count ? r + i : 0) * pitch;
        turn<W>(rows, depth, [&](int64_t c, vec x) { store(panel + c * COLS + r, x); });
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
// Sixteen rows by some groups of a block: a word of each row holds eight codes.
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
#pragma GCC unroll 1
    for (int64_t i = 0; i < groups * 4; ++i)
        for (int j = 0; j < 8; ++j) {
            const Words codes = (Words)square[i] >> 4 * j;
            const vec value = (vec)mx_values<Fp32>(codes) * load(factors[i / 4]);
            store(panel + (8 * i + j) * COLS, value);
        }
}

void coded(const Codes& w, int64_t count, int64_t begin, int64_t depth, float* panel) {
    for (int64_t c = 0; c < depth; c += MX_BLOCK)
        for (int64_t r = 0; r < COLS; r += W) {
            const int64_t first = (r < count ? r : 0) * w.pitch;
            const int64_t some = least(MX_BLOCK, depth - c);
            const Codes rows{w.bytes + first / 2, w.scale + first / GROUP, w.pitch};
            decode_block(rows, least(W, count - r), begin + c, some / GROUP,
                         panel + c * COLS + r);
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
        dense(block, MX_BLOCK, count, some, panel + c * COLS);
    }
}
#endif

}  // namespace

void pack_w(const Source& w, int64_t first, int64_t begin, int64_t depth,
            float* panel) {
    const int64_t count = least(COLS, w.rows - first), at = first * w.pitch;
    if (w.form == MXFP4) {
        auto* bytes = static_cast<const uint8_t*>(w.data);
        coded({bytes + at / 2, w.scale + at / GROUP, w.pitch}, count, begin, depth,
              panel);
    } else if (w.form == BF16) {
        dense(static_cast<const bf16*>(w.data) + at + begin, w.pitch, count, depth,
              panel);
    } else {
        dense(static_cast<const float*>(w.data) + at + begin, w.pitch, count, depth,
              panel);
    }
}

void pack_x(const Rows& x, int64_t first, int64_t begin, int64_t depth, float* panel) {
    const float* rows[ROWS];
    for (int64_t i = 0; i < ROWS; ++i) {
        const int64_t row = first + i < x.count ? first + i : first;
        rows[i] = x.x + (x.which ? x.which[row] : row) * x.pitch + begin;
    }
    turn<ROWS>(rows, depth, [&](int64_t c, vec column) {
        std::memcpy(panel + c * ROWS, &column, ROWS * sizeof(float));
    });
}

}  // namespace gemm
}  // namespace k3
