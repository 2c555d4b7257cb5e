// AttnRes mixing and its gradient, as kernels/attn_res.mix: one row at a time, each
// source read twice while it is in cache.
#include <cmath>

#include "api.h"
#include "pool.h"
#include "rows.h"

namespace {

using namespace k3;

constexpr int64_t ROWS = 16;

// What mixing reads: blocks [n S D], scale [n S], prefix [n D] or null, query [D].
struct Sources {
    const float *blocks, *scale, *prefix, *query;
    float eps;
    int64_t n, S, D;

    int64_t all() const { return S + (prefix != nullptr); }
    const float* at(int64_t row, int64_t s) const {
        return s < S ? blocks + (row * S + s) * D : prefix + row * D;
    }
    float inverse_rms(int64_t row, int64_t s) const {
        if (s < S) return scale[row * S + s];
        const float* x = prefix + row * D;
        return 1.0f / std::sqrt(dot_row(x, x, D) / static_cast<float>(D) + eps);
    }
};

// p [all] of a row; `seen` takes query . source, `rms` what it is multiplied by.
void weigh(const Sources& x, int64_t row, float* p, float* seen, float* rms) {
    float most = -INFINITY, total = 0;
    for (int64_t s = 0; s < x.all(); ++s) {
        seen[s] = dot_row(x.at(row, s), x.query, x.D);
        rms[s] = x.inverse_rms(row, s);
        p[s] = seen[s] * rms[s];
        // A NaN stays in p and so in the result.
        most = p[s] > most ? p[s] : most;
    }
    for (int64_t s = 0; s < x.all(); ++s) total += p[s] = std::exp(p[s] - most);
    for (int64_t s = 0; s < x.all(); ++s) p[s] /= total;
}

void mix_row(const Sources& x, int64_t row, float* out) {
    float p[256], seen[256], rms[256];
    weigh(x, row, p, seen, rms);
    over(x.D, [&](int64_t i, int64_t n) {
        vec y = {};
        for (int64_t s = 0; s < x.all(); ++s) y += load_n(x.at(row, s) + i, n) * p[s];
        store_n(out + i, y, n);
    });
}

struct Gradients {
    float *blocks, *scale, *prefix;
};

// Gradients of one row; dquery [D] is added to.
void pull_row(const Sources& x, int64_t row, const float* dy, const Gradients& d,
              float* dquery) {
    float p[256], seen[256], rms[256], ds[256], mean = 0;
    weigh(x, row, p, seen, rms);
    for (int64_t s = 0; s < x.all(); ++s) {
        ds[s] = dot_row(dy, x.at(row, s), x.D);
        mean += p[s] * ds[s];
    }
    for (int64_t s = 0; s < x.all(); ++s) {
        ds[s] = p[s] * (ds[s] - mean);
        const bool own = s >= x.S;
        float* dx = own ? d.prefix + row * x.D : d.blocks + (row * x.S + s) * x.D;
        const float toward = ds[s] * rms[s];
        // Only the prefix's rms is made here, so only its gradient goes on.
        const float back =
            own ? ds[s] * seen[s] * rms[s] * rms[s] * rms[s] / static_cast<float>(x.D)
                : 0.0f;
        if (!own) d.scale[row * x.S + s] = ds[s] * seen[s];
        const float* source = x.at(row, s);
        over(x.D, [&](int64_t i, int64_t n) {
            vec v = load_n(source + i, n), q = load_n(x.query + i, n);
            store_n(dx + i, load_n(dy + i, n) * p[s] + q * toward - v * back, n);
            store_n(dquery + i, load_n(dquery + i, n) + v * toward, n);
        });
    }
}

int64_t pieces(int64_t n) { return (n + ROWS - 1) / ROWS; }

template <class F>
void rows(const Sources& x, int64_t threads, F&& f) {
    const bool small = x.n * x.all() * x.D < 32768;
    parallel(small ? 1 : threads, pieces(x.n), [&](int64_t b) {
        for (int64_t r = b * ROWS; r < x.n && r < (b + 1) * ROWS; ++r) f(b, r);
    });
}

}  // namespace

// out [n D]; all in fp32, at most 255 blocks.
K3_API void k3_attn_res_mix(const float* blocks, const float* scale,
                            const float* prefix, const float* query, float eps,
                            int64_t n, int64_t S, int64_t D, float* out,
                            int64_t threads) {
    Sources x{blocks, scale, prefix, query, eps, n, S, D};
    rows(x, threads, [&](int64_t, int64_t r) { mix_row(x, r, out + r * D); });
}

// Gradients of blocks, scale and prefix, and of the query in parts [ceil(n / 16) D].
K3_API void k3_attn_res_backward(const float* blocks, const float* scale,
                                 const float* prefix, const float* query, float eps,
                                 int64_t n, int64_t S, int64_t D, const float* dy,
                                 float* dblocks, float* dscale, float* dprefix,
                                 float* dquery, int64_t threads) {
    Sources x{blocks, scale, prefix, query, eps, n, S, D};
    std::memset(dquery, 0, pieces(n) * D * sizeof(float));
    Gradients d{dblocks, dscale, dprefix};
    rows(x, threads,
         [&](int64_t b, int64_t r) { pull_row(x, r, dy + r * D, d, dquery + b * D); });
}
