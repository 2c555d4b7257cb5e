// SiTU and its gradient, as kernels/situ.py.
#include "api.h"
#include "pool.h"
#include "rows.h"

#include <type_traits>

namespace {

using namespace k3;

constexpr int64_t BLOCK = 4096;

// Calls f(i, n) over vectors of n values in parallel blocks.
template <class F>
void everywhere(int64_t size, int64_t threads, F&& f) {
    parallel(size < 4 * BLOCK ? 1 : threads, (size + BLOCK - 1) / BLOCK,
             [&](int64_t b) {
                 const int64_t first = b * BLOCK, left = size - first;
                 over(left < BLOCK ? left : BLOCK,
                      [&](int64_t i, int64_t n) { f(first + i, n); });
             });
}

template <class T>
void forward(const T* gate, const T* up, float beta, float linear, int64_t size, T* out,
             int64_t threads) {
    everywhere(size, threads, [&](int64_t i, int64_t n) {
        store_n(out + i, situ(load_n(gate + i, n), load_n(up + i, n), beta, linear), n);
    });
}

template <class T>
struct Factors {
    const T *dy, *gate, *up;
    float beta, linear;
    T *dgate, *dup;
};

template <class T>
void backward(const Factors<T>& x, int64_t size, int64_t threads) {
    const float bound = x.beta * x.linear;
    everywhere(size, threads, [&](int64_t i, int64_t n) {
        vec dy = load_n(x.dy + i, n), g = load_n(x.gate + i, n);
        vec t = tanh(g / x.beta), s = sigmoid(g),
            l = tanh(load_n(x.up + i, n) / x.linear);
        vec slope = (1.0f - t * t) * s / x.beta + t * s * (1.0f - s);
        store_n(x.dgate + i, dy * slope * l * bound, n);
        store_n(x.dup + i, dy * t * s * (1.0f - l * l) * x.beta, n);
    });
}

}  // namespace

// gate, up -> out, all of `size` values in fp32 or (is_bf16) bf16.
K3_API void k3_situ(const void* gate, const void* up, float beta, float linear,
                    int64_t size, void* out, int64_t is_bf16, int64_t threads) {
    auto run = [&](auto* as) {
        using T = std::remove_pointer_t<decltype(as)>;
        forward(static_cast<const T*>(gate), static_cast<const T*>(up), beta, linear,
                size, static_cast<T*>(out), threads);
    };
    if (is_bf16) run(static_cast<bf16*>(nullptr));
    else run(static_cast<float*>(nullptr));
}

// The gradients of gate and up for that of out.
K3_API void k3_situ_backward(const void* dy, const void* gate, const void* up,
                             float beta, float linear, int64_t size, void* dgate,
                             void* dup, int64_t is_bf16, int64_t threads) {
    auto run = [&](auto* as) {
        using T = std::remove_pointer_t<decltype(as)>;
        Factors<T> x{static_cast<const T*>(dy),
                     static_cast<const T*>(gate),
                     static_cast<const T*>(up),
                     beta,
                     linear,
                     static_cast<T*>(dgate),
                     static_cast<T*>(dup)};
        backward(x, size, threads);
    };
    if (is_bf16) run(static_cast<bf16*>(nullptr));
    else run(static_cast<float*>(nullptr));
}
