// Sweeps of tokens over a slab of the memory that stays in the first cache.
//
// A slab is NV vectors of value rows, stored [K NV W]. A sweep adds what the last two
// tokens wrote and reads for the next two: six fused products an element, one load and
// one store. The second token of a pair does not see the first one's write in the memory
// it reads; it is added from the product of their keys.
#pragma once
#include "kda_fold.h"

namespace k3::kda {

// What two tokens wrote that is not in the slab yet: rows up, values e.
template <int NV>
struct Pending {
    const float *up, *up2;
    vec e[NV], e2[NV];
};

// What two tokens read: by their keys and by their queries.
template <int NV>
struct Read {
    vec key[NV], query[NV], key2[NV], query2[NV];
};

template <int NV, bool Fresh, bool Two>
inline Read<NV> sweep(float* slab, const Folded& f, int64_t t, const Pending<NV>& last) {
    const float *key = f.key + t * f.row, *query = f.query + t * f.row;
    const float *key2 = key + f.row, *query2 = query + f.row;
    const float *scale = f.scale + t * f.row, *up = last.up, *up2 = last.up2;
    vec e[NV], e2[NV], x[NV] = {}, y[NV] = {}, x2[NV] = {}, y2[NV] = {};
    for (int j = 0; j < NV; ++j) e[j] = last.e[j], e2[j] = last.e2[j];
    for (int64_t i = 0; i < f.K; ++i) {
        float* row = slab + i * NV * W;
#pragma GCC unroll 8
        for (int j = 0; j < NV; ++j) {
            vec s = load(row + j * W) + up[i] * e[j];
            s += up2[i] * e2[j];
            if (Fresh) s *= scale[i];
            store(row + j * W, s);
            x[j] += s * key[i];
            y[j] += s * query[i];
            if (!Two) continue;
            x2[j] += s * key2[i];
            y2[j] += s * query2[i];
        }
    }
    Read<NV> read;
    for (int j = 0; j < NV; ++j) {
        read.key[j] = x[j], read.query[j] = y[j];
        read.key2[j] = x2[j], read.query2[j] = y2[j];
    }
    return read;
}

// Add what is pending and give the memory its decay back.
template <int NV>
inline void settle(float* slab, const Folded& f, const Pending<NV>& last) {
    for (int64_t i = 0; i < f.K; ++i) {
        float* row = slab + i * NV * W;
        for (int j = 0; j < NV; ++j) {
            vec s = load(row + j * W) + last.up[i] * last.e[j] + last.up2[i] * last.e2[j];
            store(row + j * W, s * f.decay[i]);
        }
    }
}

// Values, readouts and errors (or null) of the lanes of a slab.
struct Lanes {
    Rows v;
    float *out, *errors;
    int64_t count, stride;  // stride: of out and errors, from token to token

    // Write what token t of the block reads and return what it writes, for vector j.
    vec close(const Folded& f, int64_t t, int j, vec by_key, vec by_query) const {
        int64_t left = count - j * W, n = left < W ? left : W;
        if (n <= 0) return vec{};
        vec error = load_n(v.at(t) + j * W, n) - by_key, e = error * f.beta[t];
        store_n(out + t * stride + j * W, by_query + e * f.own[t], n);
        if (errors) store_n(errors + t * stride + j * W, error, n);
        return e;
    }
};

// Run n folded tokens over a slab.
template <int NV>
inline void run_slab(float* slab, const Folded& f, int64_t n, const Lanes& lanes) {
    Pending<NV> last{f.zero, f.zero, {}, {}};
    for (int64_t t = 0; t < n;) {
        bool two = t + 1 < n && !f.fresh[t + 1];
        Read<NV> read;
        if (f.fresh[t]) read = two ? sweep<NV, true, true>(slab, f, t, last)
                                   : sweep<NV, true, false>(slab, f, t, last);
        else read = two ? sweep<NV, false, true>(slab, f, t, last)
                        : sweep<NV, false, false>(slab, f, t, last);
        last.up = f.up + t * f.row;
        last.up2 = two ? last.up + f.row : f.zero;
        for (int j = 0; j < NV; ++j) {
            vec e = lanes.close(f, t, j, read.key[j], read.query[j]), e2 = {};
            if (two) {
                vec key = read.key2[j] + e * f.key_up[t + 1];
                vec query = read.query2[j] + e * f.query_up[t + 1];
                e2 = lanes.close(f, t + 1, j, key, query);
            }
            last.e[j] = e, last.e2[j] = e2;
        }
        t += two ? 2 : 1;
    }
    if (n) settle<NV>(slab, f, last);
}

}  // namespace k3::kda
