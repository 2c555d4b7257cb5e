// Products of many rows of x with a matrix, from packed panels: ROWS rows of x meet COLS
// rows of W in registers, and each value is loaded once for all of a tile. Sums are fp32.
//
// A panel holds one column of all its rows after the other, of a bf16 trunk where the
// processor multiplies pairs two of them in each lane; where a row is missing there is
// another, whose sums are not stored. A sum runs over the columns in their order, a
// panel at a time: it has the same bits wherever its row lies, and for any number of
// threads. See __AVX512BF16__ in lanes.h.
#pragma once
#include "lanes.h"

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
// Columns that a lane of a panel holds; with one they are widened.
#if defined(__AVX512BF16__)
template <class T>
inline constexpr int64_t PER = T::PER_LANE;
#else
template <class T>
inline constexpr int64_t PER = 1;
#endif
// Columns of x and W in a panel: one of each lies in the second cache.
template <class T>
inline constexpr int64_t DEPTH = 512 * PER<T>;
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
template <class T>
struct Rows {
    const typename T::value* x;
    int64_t pitch, count, cols;
    const int64_t* which = nullptr;
};

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t panels(int64_t rows, int64_t each) { return (rows + each - 1) / each; }

// Floats that a panel takes of each of its rows.
template <class T>
int64_t lanes(int64_t depth) {
    return panels(depth, PER<T>);
}

// Floats that `multiply` takes to pack rows of x.
template <class T>
int64_t room(const Rows<T>& x) {
    return least(panels(x.count, ROWS) * ROWS, AT_ONCE) *
           lanes<T>(least(x.cols, DEPTH<T>));
}

// All products of the same rows; W's rows are as long as those of x.
template <class T>
void multiply(const Rows<T>& x, const Product* products, int64_t count, int64_t threads,
              float* packed);

// Columns begin .. begin + depth of rows first .. of W (COLS, or those there are).
template <class T>
void pack_w(const Source& w, int64_t first, int64_t begin, int64_t depth, float* panel);

// Columns begin .. begin + depth of rows first .. of x (ROWS, or those there are).
template <class T>
void pack_x(const Rows<T>& x, int64_t first, int64_t begin, int64_t depth,
            float* panel);

// y [rows cols] = a panel of x by one of W, or that is added to y.
template <class T>
void tile(const float* x, const float* w, int64_t depth, float* y, int64_t ldy,
          int64_t rows, int64_t cols, bool adds);

}  // namespace gemm
}  // namespace k3
