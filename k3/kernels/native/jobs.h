// Many products in one parallel loop: the matrices of a layer that share their input,
// or all experts that a batch has chosen.
#pragma once
#include "lanes.h"

namespace k3 {

// Rows of what the trunk holds matrices in, or of MXFP4 bytes where there are scales.
struct Matrix {
    const void* data;
    const uint8_t* scale;
};

struct Job {
    Matrix matrix;
    int64_t rows, cols;
    const void* x;  // packed rows: see Rows
    int64_t batch;
    float* y;
    int64_t ldy;
    bool rounds = true;  // whether y is left as the trunk's dtype would keep it
};

// Asks for all of a row that is soon read: rows of a layer are too short, and too far
// apart, for the processor to foresee them.
template <class V>
K3_INLINE void fetch(const V* x, int64_t count) {
    auto* p = reinterpret_cast<const char*>(x);
    const int64_t bytes = count * static_cast<int64_t>(sizeof(V));
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 3);
}

template <class T>
void run_jobs(const Job* jobs, int64_t count, int64_t threads);

// Memory of one pass: taken in pieces, given back all at once. One a thread.
class Scratch {
  public:
    template <class V>
    V* take(int64_t count) {
        return static_cast<V*>(bytes(count * static_cast<int64_t>(sizeof(V))));
    }
    // Bytes in use; `back` gives back what was taken since.
    int64_t mark() const { return used_; }
    void back(int64_t mark) { used_ = mark; }
    void reserve(int64_t size);
    ~Scratch();

  private:
    void* bytes(int64_t size);
    char* data_ = nullptr;
    int64_t size_ = 0, used_ = 0;
};

// Values from one packed row of x to the next, `arranged` for MXFP4.
template <class T>
int64_t row_pitch(int64_t cols, bool arranged);

// Rows of x [batch cols] as products take them.
template <class T>
void pack_rows(const float* x, int64_t ldx, int64_t batch, int64_t cols, bool arranged,
               typename T::value* packed);

template <class T>
typename T::value* packed_rows(Scratch& scratch, const float* x, int64_t ldx,
                               int64_t batch, int64_t cols, bool arranged = false);

}  // namespace k3
