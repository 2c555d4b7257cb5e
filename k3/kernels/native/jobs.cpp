// Runs products in pieces of whole rows; see __AVX512BF16__ in lanes.h.
#include "jobs.h"

#include <cstdlib>
#include <new>

#include "mx.h"
#include "pool.h"

namespace k3 {

namespace {

// Rows of one task; a piece of a matrix ends where four rows end, so that its sums do
// not depend on the number of threads.
constexpr int64_t PIECE_BYTES = 32768;

template <class T>
int64_t row_bytes(const Job& job) {
    return job.matrix.scale
               ? job.cols / 2 + job.cols / GROUP
               : job.cols * static_cast<int64_t>(sizeof(typename T::value));
}

template <class T>
int64_t piece_rows(const Job& job) {
    int64_t rows = PIECE_BYTES / (row_bytes<T>(job) + 1);
    return rows < 4 ? 4 : rows / 4 * 4;
}

template <class T>
void run_piece(const Job& job, int64_t begin, int64_t end) {
    using V = typename T::value;
    const V* x = static_cast<const V*>(job.x);
    if (job.matrix.scale)
        mx_product<T>(static_cast<const uint8_t*>(job.matrix.data), job.matrix.scale,
                      begin, end, job.cols, x, job.batch, job.y, job.ldy);
    else
        product<T>(static_cast<const V*>(job.matrix.data), begin, end, job.cols, x,
                   job.batch, job.y, job.ldy);
    if (job.rounds)
        for (int64_t n = 0; n < job.batch; ++n)
            T::round_row(job.y + n * job.ldy + begin, end - begin);
}

}  // namespace

template <class T>
void run_jobs(const Job* jobs, int64_t count, int64_t threads) {
    if (threads <= 1) {
        for (int64_t j = 0; j < count; ++j) run_piece<T>(jobs[j], 0, jobs[j].rows);
        return;
    }
    int64_t pieces = 0;
    for (int64_t j = 0; j < count; ++j) {
        int64_t rows = piece_rows<T>(jobs[j]);
        pieces += (jobs[j].rows + rows - 1) / rows;
    }
    parallel(threads, pieces, [&](int64_t i) {
        for (int64_t j = 0; j < count; ++j) {
            int64_t rows = piece_rows<T>(jobs[j]);
            int64_t here = (jobs[j].rows + rows - 1) / rows;
            if (i < here) {
                int64_t end = (i + 1) * rows;
                return run_piece<T>(jobs[j], i * rows,
                                    end < jobs[j].rows ? end : jobs[j].rows);
            }
            i -= here;
        }
    });
}

void Scratch::reserve(int64_t size) {
    used_ = 0;
    if (size <= size_) return;
    std::free(data_);
    size_ = (size + 4095) / 4096 * 4096;
    data_ = static_cast<char*>(std::aligned_alloc(4096, static_cast<size_t>(size_)));
    if (!data_) throw std::bad_alloc();
}

Scratch::~Scratch() { std::free(data_); }

void* Scratch::bytes(int64_t size) {
    char* at = data_ + used_;
    used_ += (size + 63) / 64 * 64;
    if (used_ > size_) std::abort();
    return at;
}

template <class T>
void pack_rows(const float* x, int64_t ldx, int64_t batch, int64_t cols, bool arranged,
               typename T::value* packed) {
    const int64_t ldp = pitch<T>(cols);
    for (int64_t n = 0; n < batch; ++n) {
        auto* row = packed + n * ldp;
        T::pack(x + n * ldx, row, cols);
        for (int64_t c = cols; c < ldp; ++c) row[c] = 0;
        if constexpr (T::PER_LANE == 1)
            if (arranged) mx_arrange<T>(row, cols);
    }
}

template <class T>
typename T::value* packed_rows(Scratch& scratch, const float* x, int64_t ldx,
                               int64_t batch, int64_t cols, bool arranged) {
    auto* packed = scratch.take<typename T::value>(batch * pitch<T>(cols));
    pack_rows<T>(x, ldx, batch, cols, arranged, packed);
    return packed;
}

#define K3_FOR(T)                                                               \
    template void run_jobs<T>(const Job*, int64_t, int64_t);                    \
    template void pack_rows<T>(const float*, int64_t, int64_t, int64_t, bool,   \
                               T::value*);                                      \
    template T::value* packed_rows<T>(Scratch&, const float*, int64_t, int64_t, \
                                      int64_t, bool);
K3_FOR(Fp32)
K3_FOR(Bf16)

}  // namespace k3
