// Kimi Delta Attention: what its forms take. A memory is S [V K] in fp32; per token
//
//     S' = S diag(a),  e = beta (v - S' k),  S = S' + e k^T,  out = S q,   a = exp(g).
#pragma once
#include <cstdint>
#include <cstdlib>
#include <new>

#include "simd.h"

namespace k3::kda {

// Rows of one head: element x of token t is at data[t * token + x].
struct Rows {
    const float* data;
    int64_t token;
    const float* at(int64_t t) const { return data + t * token; }
    Rows from(int64_t t) const { return {at(t), token}; }
};

// Rows of all heads: tokens and heads at any distance, elements side by side.
struct Heads {
    const float* data;
    int64_t token;
    int64_t head;
    Rows of(int64_t h) const { return {data + h * head, token}; }
};

// One call over packed sequences; Python packs the same fields in the same order.
struct Call {
    Heads q, k, v, g, beta;
    const float* state;   // [S H V K]
    float* final;         // [S H V K]
    float* out;           // [T H V]
    float* errors;        // [T H V] or null: v - S' k of every token, for gradients
    const int64_t* lens;  // [S]
    int64_t S, H, K, V, threads;
};

// The tokens of one head of one sequence.
struct Tokens {
    Rows q, k, v, g, beta;
    Tokens from(int64_t t) const {
        return {q.from(t), k.from(t), v.from(t), g.from(t), beta.from(t)};
    }
};

inline int64_t padded(int64_t n) { return (n + W - 1) / W * W; }

// Aligned memory for the length of a task; not initialized. Each of at most PARTS parts
// begins on a cache line, which may cost a line beyond the floats asked for.
class Room {
  public:
    static constexpr int64_t PARTS = 64;
    explicit Room(int64_t floats) {
        size_t bytes = static_cast<size_t>((floats + 15) / 16 + PARTS) * 64;
        data_ = static_cast<float*>(std::aligned_alloc(64, bytes));
        if (!data_) std::abort();
    }
    ~Room() { std::free(data_); }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    float* take(int64_t floats) {
        float* here = data_ + used_;
        used_ += (floats + 15) / 16 * 16;
        return here;
    }

  private:
    float* data_;
    int64_t used_ = 0;
};

}  // namespace k3::kda
