// Products of many rows of x with a matrix in fp32, from packed panels: ROWS rows of x
// meet COLS rows of W in registers, and each value is loaded once for all of a tile.
//
// A panel holds one column of all its rows after the other; where a row is missing
// there is another, whose sums are not stored. A sum runs over the columns in their
// order, DEPTH at a time: it has the same bits wherever its row lies, and for any number
// of threads.
#pragma once
#include "simd.h"

namespace k3 {
namespace gemm {

#if defined(__AVX512F__)
constexpr int64_t ROWS = 12;
#elif defined(__AVX2__)
constexpr int64_t ROWS = 6;
#else
constexpr int64_t ROWS = 3;
#endif
static_assert(ROWS <= W && ROWS % 3 == 0);
constexpr int64_t COLS = 2 * W;
// Columns of x and W in a panel: one of each lies in the second cache.
constexpr int64_t DEPTH = 512;
// Rows of x that are packed at once: 1 MB.
constexpr int64_t AT_ONCE = 528;

enum Form : int64_t { FP32, BF16, MXFP4 };

// `rows` rows of a matrix, `pitch` values from one to the next; scales with MXFP4.
struct Source {
    const void* data;
    const uint8_t* scale;
    int64_t form, rows, pitch;
};

// y [n rows] = x W^T of W's rows, `ldy` values from one row to the next.
struct Product {
    Source w;
    float* y;
    int64_t ldy;
};

// Rows of x: those that `which` names, or the first `count`.
struct Rows {
    const float* x;
    int64_t pitch, count, cols;
    const int64_t* which = nullptr;
};

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t panels(int64_t rows, int64_t each) { return (rows + each - 1) / each; }

// Floats that `multiply` takes to pack rows of x.
int64_t room(const Rows& x);

// All products of the same rows; W's rows are as long as those of x.
void multiply(const Rows& x, const Product* products, int64_t count, int64_t threads,
              float* packed);

// Columns begin .. begin + depth of rows first .. of W (COLS, or those there are).
void pack_w(const Source& w, int64_t first, int64_t begin, int64_t depth, float* panel);

// Columns begin .. begin + depth of rows first .. of x (ROWS, or those there are).
void pack_x(const Rows& x, int64_t first, int64_t begin, int64_t depth, float* panel);

// y [rows cols] = a panel of x by one of W, or that is added to y.
void tile(const float* x, const float* w, int64_t depth, float* y, int64_t ldy,
          int64_t rows, int64_t cols, bool adds);

}  // namespace gemm
}  // namespace k3
