// The short causal convolution with SiLU and its gradient, as kernels/conv.py.
//
// Row r of a sequence is window[r] below `past`, then x[r - past]; token t sees rows t to
// t + past. A task is one sequence and some channels, walked token by token.
#include "api.h"
#include "kda.h"
#include "pool.h"

namespace {

using namespace k3;

constexpr int64_t BLOCK = 256;  // channels: what a task looks back on stays in L1

// Python packs the same fields; the last five serve the backward pass.
template <class T>
struct ConvCall {
    const T *x, *window;  // [T C] [S past C]
    const float* taps;    // [past + 1, C]
    T *y, *after;         // like x and window
    const int64_t* lens;  // [S]
    int64_t S, C, past, threads;
    const T *dy, *dafter;  // like y and after
    T *dx, *dwindow;       // like x and window
    float* dtaps;          // [S, past + 1, C]
};

// Some channels of one sequence.
template <class T>
class Part {
  public:
    Part(const ConvCall<T>& c, int64_t task) : c_(c) {
        int64_t blocks = (c.C + BLOCK - 1) / BLOCK, s = task / blocks;
        int64_t first = task % blocks * BLOCK, left = c.C - first, start = 0;
        for (int64_t i = 0; i < s; ++i) start += c.lens[i];
        n_ = left < BLOCK ? left : BLOCK, tokens_ = c.lens[s];
        token_ = start * c.C + first, window_ = s * c.past * c.C + first;
        taps_ = first, dtaps_ = s * (c.past + 1) * c.C + first;
    }

    void forward() const {
        for (int64_t t = 0; t < tokens_; ++t)
            over(n_, [&](int64_t i, int64_t m) {
                vec x = filter(t, i, m);
                store_n(c_.y + token_ + t * c_.C + i, x * sigmoid(x), m);
            });
        for (int64_t r = 0; r < c_.past; ++r)
            std::memcpy(c_.after + window_ + r * c_.C, row(tokens_ + r),
                        static_cast<size_t>(n_) * sizeof(T));
    }

    // The gradient of a row is whole once the last token that sees it has been passed.
    void backward() const {
        int64_t width = c_.past + 1;
        kda::Room room(2 * width * BLOCK);
        float *ring = room.take(width * BLOCK), *sums = room.take(width * BLOCK);
        std::memset(ring, 0, static_cast<size_t>(width * BLOCK) * sizeof(float));
        std::memset(sums, 0, static_cast<size_t>(width * BLOCK) * sizeof(float));
        for (int64_t r = 0; r < tokens_ + c_.past; ++r)
            over(n_, [&](int64_t i, int64_t m) {
                float* here = ring + r % width * BLOCK + i;
                if (r < tokens_) store(here, slope(r, i, m, sums));
                else store(here, vec{});
                close(r, i, m, ring);
            });
        for (int64_t j = 0; j < width; ++j)
            std::memcpy(c_.dtaps + dtaps_ + j * c_.C, sums + j * BLOCK,
                        static_cast<size_t>(n_) * sizeof(float));
    }

  private:
    const T* row(int64_t r) const {
        return r < c_.past ? c_.window + window_ + r * c_.C
                           : c_.x + token_ + (r - c_.past) * c_.C;
    }
    vec tap(int64_t j, int64_t i, int64_t m) const {
        return load_n(c_.taps + taps_ + j * c_.C + i, m);
    }
    vec filter(int64_t t, int64_t i, int64_t m) const {
        vec x = {};
        for (int64_t j = 0; j <= c_.past; ++j)
            x += load_n(row(t + j) + i, m) * tap(j, i, m);
        return x;
    }

    // The gradient of what token t filters; its share of the taps' goes into `sums`.
    vec slope(int64_t t, int64_t i, int64_t m, float* sums) const {
        vec x = filter(t, i, m), s = sigmoid(x);
        vec d = load_n(c_.dy + token_ + t * c_.C + i, m) * s * (1.0f + x * (1.0f - s));
        for (int64_t j = 0; j <= c_.past; ++j) {
            float* sum = sums + j * BLOCK + i;
            store(sum, load(sum) + d * load_n(row(t + j) + i, m));
        }
        return d;
    }

    // Write the gradient of row r: token r - j saw it through tap j.
    void close(int64_t r, int64_t i, int64_t m, const float* ring) const {
        int64_t width = c_.past + 1, carried = r - tokens_;
        vec d = {};
        for (int64_t j = 0; j < width && j <= r; ++j)
            d += load(ring + (r - j) % width * BLOCK + i) * tap(j, i, m);
        if (carried >= 0) d += load_n(c_.dafter + window_ + carried * c_.C + i, m);
        T* to = r < c_.past ? c_.dwindow + window_ + r * c_.C
                            : c_.dx + token_ + (r - c_.past) * c_.C;
        store_n(to + i, d, m);
    }

    const ConvCall<T>& c_;
    int64_t n_, tokens_, token_, window_, taps_, dtaps_;
};

template <class T>
void run(const ConvCall<T>& c, bool back) {
    int64_t total = 0;
    for (int64_t s = 0; s < c.S; ++s) total += c.lens[s];
    int64_t tasks = c.S * ((c.C + BLOCK - 1) / BLOCK);
    parallel(total * c.C < 20000 ? 1 : c.threads, tasks, [&](int64_t task) {
        Part<T> part(c, task);
        if (back) part.backward();
        else part.forward();
    });
}

}  // namespace

K3_API void k3_conv(const void* call, int64_t is_bf16, int64_t back) {
    if (is_bf16) run(*static_cast<const ConvCall<bf16>*>(call), back);
    else run(*static_cast<const ConvCall<float>*>(call), back);
}
