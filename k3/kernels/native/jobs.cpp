// Runs products in pieces of whole rows; see __AVX512BF16__ in lanes.h.
#include "jobs.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "mx_rows.h"
#include "pool.h"

namespace k3 {

namespace {

// A piece is some rows of a matrix by some rows of x. It ends where four rows of the
// matrix end, so that its sums do not depend on the number of threads; rows of x stay
// in the second cache while those of the matrix pass by.
constexpr int64_t PIECE_BYTES = 32768, WIDE_BYTES = 131072;

template <class T>
int64_t row_bytes(const Job& job) {
    return job.matrix.scale
               ? job.cols / 2 + job.cols / GROUP
               : job.cols * static_cast<int64_t>(sizeof(typename T::weight));
}

struct Pieces {
    int64_t rows, batch, across, count;
};

template <class T>
Pieces cut(const Job& job, int64_t threads) {
    const int64_t size = job.cols * static_cast<int64_t>(sizeof(typename T::value));
    int64_t batch = WIDE_BYTES / (size + 1) / 4 * 4;
    batch = batch < 16 ? 16 : batch;
    const bool wide = job.batch > batch;
    const int64_t bytes = wide ? WIDE_BYTES : PIECE_BYTES;
    int64_t rows = threads <= 1 ? job.rows : bytes / (row_bytes<T>(job) + 1) / 4 * 4;
    rows = rows < 4 ? 4 : rows;
    const int64_t across = (job.batch + batch - 1) / batch;
    return {rows, batch, across, (job.rows + rows - 1) / rows * across};
}

// `after` is the matrix that comes next.
template <class T>
void run_piece(const Job& job, const Pieces& pieces, int64_t i, const Matrix& after) {
    using V = typename T::value;
    const int64_t begin = i / pieces.across * pieces.rows;
    const int64_t first = i % pieces.across * pieces.batch;
    const int64_t end = std::min(begin + pieces.rows, job.rows);
    const int64_t batch = std::min(pieces.batch, job.batch - first);
    const int64_t ldx = row_pitch<T>(job.cols, job.matrix.scale != nullptr);
    const V* x = static_cast<const V*>(job.x) + first * ldx;
    float* y = job.y + first * job.ldy;
    if (job.matrix.scale) {
        auto place = [](const Matrix& w) {
            return MxPlace{static_cast<const uint8_t*>(w.data), w.scale};
        };
        mx_product<typename T::trunk>(place(job.matrix), begin, end, job.cols, x, batch,
                                      y, job.ldy, place(after));
    } else
        product<T>(static_cast<const typename T::weight*>(job.matrix.data), begin, end,
                   job.cols, x, batch, y, job.ldy);
    if (job.rounds)
        for (int64_t n = 0; n < batch; ++n)
            T::round_row(y + n * job.ldy + begin, end - begin);
}

}  // namespace

template <class T>
void run_jobs(const Job* jobs, int64_t count, int64_t threads) {
    if (threads <= 1) {
        for (int64_t j = 0; j < count; ++j) {
            const Pieces pieces = cut<T>(jobs[j], 1);
            const Matrix& after = jobs[j + 1 < count ? j + 1 : j].matrix;
            for (int64_t i = 0; i < pieces.count; ++i)
                run_piece<T>(jobs[j], pieces, i, after);
        }
        return;
    }
    int64_t all = 0;
    for (int64_t j = 0; j < count; ++j) all += cut<T>(jobs[j], threads).count;
    parallel(threads, all, [&](int64_t i) {
        for (int64_t j = 0; j < count; ++j) {
            const Pieces pieces = cut<T>(jobs[j], threads);
            if (i < pieces.count)
                return run_piece<T>(jobs[j], pieces, i, jobs[j].matrix);
            i -= pieces.count;
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
int64_t row_pitch(int64_t cols, bool arranged) {
    return pitch<T>(arranged ? mx_columns(cols) : cols);
}

template <class T>
void pack_rows(const float* x, int64_t ldx, int64_t batch, int64_t cols, bool arranged,
               typename T::value* packed) {
    const int64_t ldp = row_pitch<T>(cols, arranged);
    for (int64_t n = 0; n < batch; ++n) {
        auto* row = packed + n * ldp;
        T::pack(x + n * ldx, row, cols);
        std::memset(row + cols, 0, (ldp - cols) * sizeof(*row));
        if (arranged) mx_arrange<T>(row, cols);
    }
}

template <class T>
typename T::value* packed_rows(Scratch& scratch, const float* x, int64_t ldx,
                               int64_t batch, int64_t cols, bool arranged) {
    auto* packed =
        scratch.take<typename T::value>(batch * row_pitch<T>(cols, arranged));
    pack_rows<T>(x, ldx, batch, cols, arranged, packed);
    return packed;
}

#define K3_FOR(T)                                                                   \
    template void product<T>(const T::weight*, int64_t, int64_t, int64_t,           \
                             const T::value*, int64_t, float*, int64_t);            \
    template void run_jobs<T>(const Job*, int64_t, int64_t);                        \
    template int64_t row_pitch<T>(int64_t, bool);                                   \
    template void pack_rows<T>(const float*, int64_t, int64_t, int64_t, bool,       \
                               T::value*);                                          \
    template T::value* packed_rows<T>(Scratch&, const float*, int64_t, int64_t,     \
                                      int64_t, bool);
K3_FOR(Fp32)
K3_FOR(Bf16)
K3_FOR(Stored)

}  // namespace k3
