// Gradients of KDA's recurrence, a head at a time, from the last token to the first.
//
// With dS the gradient of S after a token, r = v - S' k kept by the forward pass,
//
//     dS += do q^T,  dq = S^T do,  dr = beta dS k,  dk = dS^T e - S'^T dr,
//     dv = dr,  dbeta = (dS k) . r,  dS' = dS - dr k^T,  dg = sum_v dS' S',
//
// and dS' diag(a) goes on to the token before. The memory is run forward again from
// the start, kept at every CHUNK tokens, and once more within a chunk.
#include "api.h"
#include "kda.h"
#include "pool.h"

namespace {

using namespace k3;
using namespace k3::kda;

constexpr int CHUNK = 16;
constexpr int R = 4;

struct Back {
    Heads q, k, v, g, beta, d_out;
    const float *state, *errors, *d_final;  // [S H V K], [T H V], [S H V K]
    float *dq, *dk, *dv, *dg, *d_beta, *d_state;
    const int64_t* lens;
    int64_t S, H, K, V, threads;
};

// One chunk of one head, padded: rows of Kp or Vp with zeros at their ends.
struct Chunk {
    int64_t K, V, Kp, Vp, n = 0;
    float *a, *k, *q, *dq, *dk, *dg;  // [CHUNK Kp]
    float *error, *e, *d_out, *dv;    // [CHUNK Vp]
    float *beta, *d_beta;             // [CHUNK]
    float* memory;                    // [CHUNK + 1, R, Kp]

    static int64_t floats(int64_t Kp, int64_t Vp) {
        return CHUNK * (6 * Kp + 4 * (Vp + 16) + 2) + (CHUNK + 1) * R * Kp + 64;
    }
    Chunk(Room& room, int64_t K, int64_t V, int64_t Vp)
        : K(K), V(V), Kp(padded(K)), Vp(Vp) {
        float** wide[] = {&a, &k, &q, &dq, &dk, &dg};
        for (float** part : wide) *part = room.take(CHUNK * Kp);
        float** values[] = {&error, &e, &d_out, &dv};
        for (float** part : values) *part = room.take(CHUNK * Vp);
        beta = room.take(CHUNK), d_beta = room.take(CHUNK);
        memory = room.take((CHUNK + 1) * R * Kp);
    }
};

// A head of a sequence: its rows in what goes in and comes out.
struct Head {
    Tokens in;
    Rows d_out, errors;
    float *dq, *dk, *dv, *dg, *d_beta;  // rows of this head, `heads` rows a token
    int64_t heads, tokens;
};

void fill(Chunk& c, const Head& head, int64_t start) {
    c.n = head.tokens - start < CHUNK ? head.tokens - start : CHUNK;
    Tokens in = head.in.from(start);
    for (int64_t t = 0; t < c.n; ++t) {
        int64_t row = t * c.Kp, values = t * c.Vp;
        c.beta[t] = *in.beta.at(t);
        over(c.K, [&](int64_t i, int64_t n) {
            store(c.a + row + i, exp(load_n(in.g.at(t) + i, n)));
            store(c.k + row + i, load_n(in.k.at(t) + i, n));
            store(c.q + row + i, load_n(in.q.at(t) + i, n));
        });
        for (int64_t v = 0; v < c.Vp; ++v) {
            bool real = v < c.V;
            c.error[values + v] = real ? head.errors.at(start + t)[v] : 0.0f;
            c.d_out[values + v] = real ? head.d_out.at(start + t)[v] : 0.0f;
            c.e[values + v] = c.error[values + v] * c.beta[t];
        }
    }
}

// The memory of R rows after a token, from the one before it.
inline void forward(const Chunk& c, int64_t t, int64_t v, const float* from, float* to) {
    for (int64_t i = 0; i < c.Kp; i += W) {
        vec a = load(c.a + t * c.Kp + i), k = load(c.k + t * c.Kp + i);
        for (int r = 0; r < R; ++r)
            store(to + r * c.Kp + i,
                  load(from + r * c.Kp + i) * a + k * c.e[t * c.Vp + v + r]);
    }
}

// Token t backward over R rows; dS [R Kp] is that of after the token, then of before.
inline void backward(Chunk& c, int64_t t, int64_t v, float* dS) {
    const float* before = c.memory + t * R * c.Kp;
    const float* after = before + R * c.Kp;
    int64_t row = t * c.Kp, value = t * c.Vp + v;
    const float *d_out = c.d_out + value, *e = c.e + value;
    vec dSk[R] = {};
    for (int64_t i = 0; i < c.Kp; i += W) {
        vec q = load(c.q + row + i), k = load(c.k + row + i);
        vec dq = load(c.dq + row + i), dk = load(c.dk + row + i);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            vec d = load(dS + r * c.Kp + i) + q * d_out[r];
            store(dS + r * c.Kp + i, d);
            dq += load(after + r * c.Kp + i) * d_out[r];
            dk += d * e[r];
            dSk[r] += d * k;
        }
        store(c.dq + row + i, dq);
        store(c.dk + row + i, dk);
    }
    float dr[R];
    for (int r = 0; r < R; ++r) {
        float sk = sum(dSk[r]);
        dr[r] = c.dv[value + r] = sk * c.beta[t];
        c.d_beta[t] += sk * c.error[value + r];
    }
    for (int64_t i = 0; i < c.Kp; i += W) {
        vec a = load(c.a + row + i), k = load(c.k + row + i);
        vec dk = load(c.dk + row + i), dg = load(c.dg + row + i);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            vec s = load(before + r * c.Kp + i) * a;
            vec d = load(dS + r * c.Kp + i) - k * dr[r];
            dk -= s * dr[r];
            dg += d * s;
            store(dS + r * c.Kp + i, d * a);
        }
        store(c.dk + row + i, dk);
        store(c.dg + row + i, dg);
    }
}

void run_chunk(Chunk& c, const float* start, float* dS) {
    std::memset(c.dq, 0, static_cast<size_t>(3 * CHUNK * c.Kp) * 4);
    std::memset(c.d_beta, 0, CHUNK * 4);
    for (int64_t v = 0; v < c.Vp; v += R) {
        std::memcpy(c.memory, start + v * c.Kp, static_cast<size_t>(R * c.Kp) * 4);
        for (int64_t t = 0; t < c.n; ++t)
            forward(c, t, v, c.memory + t * R * c.Kp, c.memory + (t + 1) * R * c.Kp);
        for (int64_t t = c.n - 1; t >= 0; --t) backward(c, t, v, dS + v * c.Kp);
    }
}

void write(const Chunk& c, const Head& head, int64_t start) {
    size_t wide = static_cast<size_t>(c.K) * 4, values = static_cast<size_t>(c.V) * 4;
    for (int64_t t = 0; t < c.n; ++t) {
        int64_t at = (start + t) * head.heads;
        std::memcpy(head.dq + at * c.K, c.dq + t * c.Kp, wide);
        std::memcpy(head.dk + at * c.K, c.dk + t * c.Kp, wide);
        std::memcpy(head.dg + at * c.K, c.dg + t * c.Kp, wide);
        std::memcpy(head.dv + at * c.V, c.dv + t * c.Vp, values);
        head.d_beta[at] = c.d_beta[t];
    }
}

// Rows of K to rows of Kp and back.
void pad(float* to, const float* from, int64_t K, int64_t V) {
    for (int64_t v = 0; v < V; ++v)
        over(K, [&](int64_t i, int64_t n) {
            store(to + v * padded(K) + i, load_n(from + v * K + i, n));
        });
}

void unpad(float* to, const float* from, int64_t K, int64_t V) {
    for (int64_t v = 0; v < V; ++v)
        std::memcpy(to + v * K, from + v * padded(K), static_cast<size_t>(K) * 4);
}

void run_head(const Head& head, const float* state, const float* d_final, float* d_state,
              int64_t K, int64_t V) {
    int64_t Kp = padded(K), Vp = (V + R - 1) / R * R, size = Vp * Kp;
    int64_t chunks = (head.tokens + CHUNK - 1) / CHUNK;
    Room room(Chunk::floats(Kp, Vp) + (chunks + 2) * size);
    Chunk c(room, K, V, Vp);
    float* dS = room.take(size);
    float* kept = room.take((chunks + 1) * size);
    std::memset(dS, 0, static_cast<size_t>(size) * 4);
    std::memset(kept, 0, static_cast<size_t>(size) * 4);
    pad(kept, state, K, V);
    pad(dS, d_final, K, V);
    for (int64_t i = 0; i + 1 < chunks; ++i) {
        fill(c, head, i * CHUNK);
        for (int64_t v = 0; v < Vp; v += R) {
            float* here = kept + i * size + v * Kp;
            for (int64_t t = 0; t < CHUNK; ++t)
                forward(c, t, v, t ? here + size : here, here + size);
        }
    }
    for (int64_t i = chunks - 1; i >= 0; --i) {
        fill(c, head, i * CHUNK);
        run_chunk(c, kept + i * size, dS);
        write(c, head, i * CHUNK);
    }
    unpad(d_state, dS, K, V);
}

}  // namespace

K3_API void k3_kda_backward(const Back* b) {
    int64_t total = 0;
    for (int64_t s = 0; s < b->S; ++s) total += b->lens[s] + 1;
    bool small = total * b->H * b->K * b->V < 50000;
    parallel(small ? 1 : b->threads, b->S * b->H, [&](int64_t task) {
        int64_t sequence = task / b->H, h = task % b->H, start = 0;
        for (int64_t s = 0; s < sequence; ++s) start += b->lens[s];
        int64_t K = b->K, V = b->V, at = start * b->H + h, memory = task * V * K;
        Tokens all{b->q.of(h), b->k.of(h), b->v.of(h), b->g.of(h), b->beta.of(h)};
        Rows errors{b->errors + at * V, b->H * V};
        Head head{all.from(start), b->d_out.of(h).from(start), errors,
                  b->dq + at * K, b->dk + at * K, b->dv + at * V, b->dg + at * K,
                  b->d_beta + at, b->H, b->lens[sequence]};
        run_head(head, b->state + memory, b->d_final + memory, b->d_state + memory, K, V);
    });
}
