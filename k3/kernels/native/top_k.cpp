// The k largest of each row, as kernels/moe.top_k: ties to the lower index, NaN above all.
#include "api.h"
#include "pool.h"
#include "simd.h"

namespace {

using namespace k3;

constexpr int64_t MOST = 64, BLOCK = 32;

// Rises as a place in the order does: the value first, then the lower index.
uint64_t place(float x, int64_t index) {
    x += 0.0f;  // -0 ties with 0
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    bits = x != x ? ~0u : bits >> 31 ? ~bits : bits | 0x80000000u;
    return static_cast<uint64_t>(bits) << 32 | ~static_cast<uint32_t>(index);
}

// The first k values are sorted in, later ones where they beat the last of these.
void row(const float* x, int64_t E, int64_t k, int64_t* index) {
    uint64_t best[MOST];
    int64_t count = 0;
    vec least = {};
    auto insert = [&](int64_t e) {
        const uint64_t mine = place(x[e], e);
        if (count == k && mine < best[k - 1]) return;
        int64_t i = count < k ? count++ : k - 1;
        for (; i > 0 && best[i - 1] < mine; --i) best[i] = best[i - 1];
        best[i] = mine;
        if (count == k) least = broadcast(x[~static_cast<uint32_t>(best[k - 1])]);
    };
    over(E, [&](int64_t e, int64_t n) {
        // Whoever is no larger than the last has a higher index than it.
        if (n == W && count == k && all((ivec)(load(x + e) <= least))) return;
        for (int64_t i = 0; i < n; ++i) insert(e + i);
    });
    for (int64_t i = 0; i < k; ++i) index[i] = ~static_cast<uint32_t>(best[i]);
}

}  // namespace

// index [T k] of values [T E]; k is at most E and at most 64.
K3_API void k3_top_k(const float* values, int64_t T, int64_t E, int64_t k,
                     int64_t* index, int64_t threads) {
    const bool small = T * E < 16384;
    parallel(small ? 1 : threads, (T + BLOCK - 1) / BLOCK, [&](int64_t b) {
        for (int64_t t = b * BLOCK; t < T && t < (b + 1) * BLOCK; ++t)
            row(values + t * E, E, k, index + t * k);
    });
}
