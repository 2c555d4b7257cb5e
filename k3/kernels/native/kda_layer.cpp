// A KDA layer between its projections: every row is read once and written once.
#include "kda_layer.h"

#include "api.h"
#include "pool.h"

namespace {

using namespace k3;
using namespace k3::kda;

// What a block of tokens of one head becomes before the memory takes it.
struct Block {
    int64_t Kp, Vp;
    float *q, *k, *g, *v, *out, *beta;  // [BLOCK Kp] ..., [BLOCK Vp] ..., [BLOCK]

    static int64_t floats(int64_t K, int64_t V) {
        return BLOCK * (3 * padded(K) + 2 * padded(V) + 1) + 64;
    }
    Block(Room& room, int64_t K, int64_t V) : Kp(padded(K)), Vp(padded(V)) {
        q = room.take(BLOCK * Kp), k = room.take(BLOCK * Kp), g = room.take(BLOCK * Kp);
        v = room.take(BLOCK * Vp), out = room.take(BLOCK * Vp), beta = room.take(BLOCK);
    }
    Tokens tokens() const { return {{q, Kp}, {k, Kp}, {v, Vp}, {g, Kp}, {beta, 1}}; }
};

// One head of one sequence.
template <class T>
class Head {
  public:
    Head(const LayerCall<T>& c, int64_t sequence, int64_t h)
        : c_(c), h_(h), tokens_(c.lens[sequence]),
          room_(Block::floats(c.K, c.V) + Slabs::floats(c.K, c.V) +
                (c.past + 1) * (2 * padded(c.K) + padded(c.V)) + 64),
          block_(room_, c.K, c.V), memory_((sequence * c.H + h) * c.V * c.K) {
        for (int64_t s = 0; s < sequence; ++s) start_ += c.lens[s];
        int64_t keys = c.H * c.K, head = h * c.K, row = c.channels();
        int64_t window = sequence * c.past * row;
        q_ = part(c.q + start_ * keys + head, window + head, c.K, keys);
        k_ = part(c.k + start_ * keys + head, window + keys + head, c.K, keys);
        v_ = part(c.v + start_ * c.H * c.V + h * c.V, window + 2 * keys + h * c.V, c.V,
                  c.H * c.V);
        q_.take(c.q_taps + head * (c.past + 1));
        k_.take(c.k_taps + head * (c.past + 1));
        v_.take(c.v_taps + h * c.V * (c.past + 1));
    }

    void run() {
        const float* state = c_.state + memory_;
        float* final = c_.final + memory_;
        if (tokens_ <= FEW) {
            for (int64_t t = 0; t < tokens_; ++t) prepare(t, t);
            run_rows(block_.tokens(), state, final, block_.out, nullptr, block_.Vp, tokens_,
                     c_.K, c_.V);
            for (int64_t t = 0; t < tokens_; ++t) finish(t, t);
        } else {
            Slabs slabs(room_, state, c_.K, c_.V);
            for (int64_t t = 0; t < tokens_; t += BLOCK) {
                int64_t n = tokens_ - t < BLOCK ? tokens_ - t : BLOCK;
                for (int64_t i = 0; i < n; ++i) prepare(t + i, i);
                slabs.run(block_.tokens(), n, n, block_.out, nullptr, block_.Vp);
                for (int64_t i = 0; i < n; ++i) finish(t + i, i);
            }
            slabs.store(final);
        }
        q_.keep(tokens_), k_.keep(tokens_), v_.keep(tokens_);
    }

  private:
    Channels<T> part(const T* raw, int64_t window, int64_t n, int64_t token) {
        float* taps = room_.take((c_.past + 1) * padded(n));
        return {raw, c_.window + window, c_.window_after + window, n, token, c_.past,
                c_.channels(), taps};
    }

    void prepare(int64_t t, int64_t i) {
        int64_t at = (start_ + t) * c_.H + h_, keys = i * block_.Kp;
        if (t + 4 < tokens_) {
            fetch(q_.at(t + 4), c_.K), fetch(k_.at(t + 4), c_.K), fetch(v_.at(t + 4), c_.V);
            fetch(c_.z + (at + 4 * c_.H) * c_.K, c_.K);
        }
        q_.convolve(t, block_.q + keys);
        k_.convolve(t, block_.k + keys);
        v_.convolve(t, block_.v + i * block_.Vp);
        l2(block_.q + keys, block_.Kp, 1.0f / std::sqrt(static_cast<float>(c_.K)));
        l2(block_.k + keys, block_.Kp, 1.0f);
        log_decay(c_, h_, c_.z + at * c_.K, block_.g + keys);
        block_.beta[i] = sigmoid(broadcast(widen(c_.b[at])))[0];
    }

    void finish(int64_t t, int64_t i) {
        int64_t at = ((start_ + t) * c_.H + h_) * c_.V;
        open(c_, block_.out + i * block_.Vp, c_.gate + at, c_.out + at);
    }

    const LayerCall<T>& c_;
    int64_t h_, tokens_, start_ = 0;
    Room room_;
    Block block_;
    int64_t memory_;
    Channels<T> q_, k_, v_;
};

template <class T>
void run(const LayerCall<T>& c) {
    int64_t total = 0;
    for (int64_t s = 0; s < c.S; ++s) total += c.lens[s] + 1;
    bool small = total * c.H * c.K * c.V < 100000;
    parallel(small ? 1 : c.threads, c.S * c.H,
             [&](int64_t task) { Head<T>(c, task / c.H, task % c.H).run(); });
}

}  // namespace

K3_API void k3_kda_layer(const void* call, int64_t is_bf16) {
    if (is_bf16) run(*static_cast<const LayerCall<bf16>*>(call));
    else run(*static_cast<const LayerCall<float>*>(call));
}
