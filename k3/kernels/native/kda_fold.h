// The decay of a tile folded into its keys and queries (chunk form, Eq. 4).
//
// With D_t the product of the retentions since the tile began and S = S~ diag(D), a token
// needs no product with the decay: S~ += e (k/D)^T, and S~ is read with D k and D q. A
// tile ends where some D would fall below MIN_DECAY, so no reciprocal is large, and its
// first token's own decay is applied to the memory itself: any retention in [0, 1] is
// allowed, 0 included. D is a running product and not exp of a sum: D times 1/D is 1 to
// the last bit.
#pragma once
#include "kda.h"

namespace k3::kda {

constexpr int BLOCK = 64;
constexpr float MIN_DECAY = 1e-18f;

// BLOCK tokens of one head, ready for the sweeps over slabs of its memory. What a sweep
// reads of a token is one run of memory: rows at powers of two would evict one another.
struct Folded {
    int64_t K, Kp, row;               // row: from token to token
    float *key, *query, *up, *scale;  // rows of Kp: D k, D q, k / D, decay of a new tile
    float *decay, *zero;              // [Kp]: D, and zeros
    float own[BLOCK], beta[BLOCK];    // k . q, write strength
    float key_up[BLOCK], query_up[BLOCK];  // D k and D q times k / D of the token before
    bool fresh[BLOCK];                // whether a tile begins here

    static int64_t floats(int64_t K) { return (4 * BLOCK + 2) * padded(K); }
    Folded(Room& room, int64_t K) : K(K), Kp(padded(K)), row(4 * Kp) {
        key = room.take(BLOCK * row);
        query = key + Kp, up = query + Kp, scale = up + Kp;
        decay = room.take(Kp), zero = room.take(Kp);
        for (int64_t i = 0; i < Kp; ++i) zero[i] = 0;
    }
};

// The retention of token t into `scale`; whether D keeps MIN_DECAY in all channels after
// it (false where one is NaN).
inline bool retain(Folded& f, int64_t t, const float* g) {
    float* retention = f.scale + t * f.row;
    ivec kept = ~ivec{};
    over(f.K, [&](int64_t i, int64_t n) {
        vec a = exp_down(load_n(g + i, n));
        store(retention + i, a);
        kept &= (a * load(f.decay + i) >= MIN_DECAY);
    });
    return all(kept);
}

template <bool Fresh>
inline void fold_rows(Folded& f, int64_t t, const float* q, const float* k) {
    vec own = {}, key_up = {}, query_up = {}, one = broadcast(1.0f);
    int64_t row = t * f.row;
    const float* before = t ? f.up + row - f.row : f.zero;
    over(f.K, [&](int64_t i, int64_t n) {
        vec x = load_n(k + i, n), y = load_n(q + i, n);
        vec D = load(f.scale + row + i) * load(f.decay + i), up = x;
        if (Fresh) {
            store(f.scale + row + i, D);
            D = one;
        } else {
            up = x / D;
        }
        vec key = D * x, query = D * y, last = load(before + i);
        own += x * y;
        key_up += key * last;
        query_up += query * last;
        store(f.decay + i, D);
        store(f.key + row + i, key);
        store(f.query + row + i, query);
        store(f.up + row + i, up);
    });
    f.own[t] = sum(own), f.key_up[t] = sum(key_up), f.query_up[t] = sum(query_up);
}

// Fold one token into row t, from K values at q and k and log-decays at g.
inline void fold(Folded& f, int64_t t, const float* q, const float* k, const float* g) {
    if (t == 0)
        for (int64_t i = 0; i < f.Kp; ++i) f.decay[i] = 1.0f;
    bool inside = retain(f, t, g) && t;
    f.fresh[t] = !inside;
    if (inside) fold_rows<false>(f, t, q, k);
    else fold_rows<true>(f, t, q, k);
}

}  // namespace k3::kda
