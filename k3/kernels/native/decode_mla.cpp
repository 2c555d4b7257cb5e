// One token of an MLA layer: absorbed attention over latent rows, gated output. A row
// is read once for all heads: weights are relative to the greatest score so far.
// See __AVX512BF16__ in lanes.h.
#include <cmath>

#include "absorbed.h"
#include "decode.h"
#include "pool.h"
#include "rows.h"
#include "weighted.h"

namespace k3 {

namespace {

// Parts of a context, each a task; how it is parted depends on its length alone.
constexpr int64_t PART_ROWS = 1024, MOST_PARTS = 64;

int64_t part_rows(int64_t length) {
    int64_t rows = (length + MOST_PARTS - 1) / MOST_PARTS;
    rows = rows < PART_ROWS ? PART_ROWS : rows;
    return (rows + TILE<Bf16> - 1) / TILE<Bf16> * TILE<Bf16>;
}

// What H heads have read of a part: the greatest score and the sum of weights of each,
// in two lanes, and the sum of weighted latents; whole groups of heads.
struct Read {
    float *most, *total, *latent;  // [groups PAIR] [groups PAIR] [groups HEADS latent]
    static int64_t room(int64_t H, int64_t latent) {
        return eights(H) * (HEADS * latent + 2 * PAIR);
    }
    static Read at(float* p, int64_t H) {
        return {p, p + eights(H) * PAIR, p + 2 * eights(H) * PAIR};
    }
    float greatest(int64_t h) const { return most[2 * h]; }
    float weight(int64_t h) const { return total[2 * h] + total[2 * h + 1]; }
};

template <class T>
struct Attention {
    using V = typename T::value;
    using Rows = typename T::trunk;
    Pass& pass;
    const Layer& layer;
    const Carried& carried;
    float *q, *latent, *out;  // [B H dim], [H B width] then [H B latent], [B H v]

    const typename T::weight* matrix(int64_t h) const {
        const Sizes& z = pass.z;
        return static_cast<const typename T::weight*>(layer.kv_b) +
               h * (z.nope + z.mla_v) * z.latent;
    }

    // Head h's queries move through kv_b: [latent | shared] of each sequence.
    void absorb(int64_t h) {
        const Sizes& z = pass.z;
        const int64_t B = pass.B(), dim = z.nope + z.rope, width = z.latent + z.rope;
        float* mine = latent + h * B * width;
        std::memset(mine, 0, B * width * sizeof(float));
        weighted<T>(matrix(h), z.nope, z.latent, q + h * dim, z.mla_heads * dim, B,
                    mine, width, z.latent);
        for (int64_t b = 0; b < B; ++b) {
            const float* shared = q + (b * z.mla_heads + h) * dim + z.nope;
            std::memcpy(mine + b * width + z.latent, shared, z.rope * sizeof(float));
        }
    }

    int64_t queries_each() const {
        return queries_room<Rows>(pass.z.mla_heads, pass.z.latent + pass.z.rope);
    }

    // Absorbed queries as scores take them, those of a sequence together.
    void place(V* queries) const {
        const int64_t B = pass.B(), H = pass.z.mla_heads, each = queries_each();
        const int64_t width = pass.z.latent + pass.z.rope;
        std::memset(queries, 0, B * each * sizeof *queries);
        for (int64_t h = 0; h < H; ++h)
            for (int64_t b = 0; b < B; ++b)
                place_query<Rows>(latent + (h * B + b) * width, h, width,
                                  queries + b * each);
    }

    // All heads of row b look at `count` rows of its context from `first` on, once.
    void look(int64_t b, int64_t first, int64_t count, const V* queries, Read read) {
        const Sizes& z = pass.z;
        const int64_t H = z.mla_heads, width = z.latent + z.rope;
        const V* rows = static_cast<const V*>(carried.rows) +
                        pass.sequence(b) * carried.stride + first * width;
        const float scale = 1.0f / std::sqrt(static_cast<float>(z.nope + z.rope));
        const int64_t groups = eights(H), room = queries_room<Rows>(HEADS, width);
        alignas(64) float scores[TILE<Rows> * HEADS];
        alignas(64) V weights[TILE<Rows> * HEADS];
        for (int64_t i = 0; i < groups * PAIR; ++i)
            read.most[i] = -INFINITY, read.total[i] = 0;
        std::memset(read.latent, 0, groups * HEADS * z.latent * sizeof(float));
        for (int64_t r = 0; r < count; r += TILE<Rows>) {
            const int64_t some = count - r < TILE<Rows> ? count - r : TILE<Rows>;
            const V* tile = rows + r * width;
            for (int64_t g = 0; g < groups; ++g) {
                float* mine = read.latent + g * HEADS * z.latent;
                score<Rows>(tile, some, width, queries + g * room, scores);
                weigh<Rows>(scores, (some + 1) / 2, scale, z.latent, weights,
                            read.most + g * PAIR, read.total + g * PAIR, mine);
                add_rows<Rows>(tile, some, width, weights, mine, z.latent, z.latent);
            }
        }
    }

    // Joins what head h of row b has read of all parts; `latent` takes it.
    void join(int64_t b, int64_t h, const float* parts, int64_t count, int64_t room) {
        const Sizes& z = pass.z;
        const int64_t H = z.mla_heads, width = z.latent + z.rope;
        const float scale = 1.0f / std::sqrt(static_cast<float>(z.nope + z.rope));
        auto part = [&](int64_t i) {
            return Read::at(const_cast<float*>(parts) + i * room, H);
        };
        float most = -INFINITY, total = 0;
        for (int64_t i = 0; i < count; ++i)
            most = part(i).greatest(h) > most ? part(i).greatest(h) : most;
        float* mine = latent + (h * pass.B() + b) * width;
        std::memset(mine, 0, z.latent * sizeof(float));
        for (int64_t i = 0; i < count; ++i) {
            const Read read = part(i);
            const float share =
                count == 1 ? 1 : std::exp((read.greatest(h) - most) * scale);
            total += read.weight(h) * share;
            over(z.latent, [&](int64_t c, int64_t n) {
                const vec x = load_n(read.latent + h * z.latent + c, n);
                store_n(mine + c, load_n(mine + c, n) + x * share, n);
            });
        }
        over(z.latent, [&](int64_t c, int64_t n) {
            store_n(mine + c, load_n(mine + c, n) * (1.0f / total), n);
        });
    }

    // Head h's values of what every sequence has read.
    void expand(int64_t h, V* packed) {
        const Sizes& z = pass.z;
        const int64_t B = pass.B(), width = z.latent + z.rope;
        pack_rows<T>(latent + h * B * width, width, B, z.latent, false, packed);
        product<T>(matrix(h) + z.nope * z.latent, 0, z.mla_v, z.latent, packed, B,
                   out + h * z.mla_v, z.mla_heads * z.mla_v);
    }
};

// Writes this token's row [normed latent | shared key] behind those of its sequence.
template <class T>
void append(Pass& pass, const Layer& layer, const Carried& carried, float* row) {
    using V = typename T::value;
    const Sizes& z = pass.z;
    const int64_t width = z.latent + z.rope;
    for (int64_t b = 0; b < pass.B(); ++b) {
        float* mine = row + b * width;
        norm_row<T>(mine, static_cast<const V*>(layer.kv_a_norm), z.lora_eps, z.latent,
                    mine);
        V* rows = static_cast<V*>(carried.rows) + pass.sequence(b) * carried.stride;
        T::pack(mine, rows + pass.length(b) * width, width);
    }
}

template <class T>
void attend_all(Pass& pass, Attention<T>& a) {
    using V = typename T::value;
    const Sizes& z = pass.z;
    const int64_t B = pass.B(), H = z.mla_heads, width = z.latent + z.rope;
    Scratch& s = pass.scratch;
    parallel(pass.run.threads, H, [&](int64_t h) { a.absorb(h); });
    T::round_row(a.latent, H * B * width);
    int64_t most = 1;
    for (int64_t b = 0; b < B; ++b) {
        const int64_t S = pass.length(b) + 1, rows = part_rows(S);
        most = (S + rows - 1) / rows > most ? (S + rows - 1) / rows : most;
    }
    const int64_t room = Read::room(H, z.latent), each = a.queries_each();
    auto* parts = s.take<float>(B * most * room);
    auto* queries = s.take<V>(B * each);
    a.place(queries);
    parallel(pass.run.threads, B * most, [&](int64_t i) {
        const int64_t b = i / most, S = pass.length(b) + 1, rows = part_rows(S);
        const int64_t first = i % most * rows;
        if (first < S)
            a.look(b, first, S - first < rows ? S - first : rows, queries + b * each,
                   Read::at(parts + i * room, H));
    });
    for (int64_t b = 0; b < B; ++b) {
        const int64_t S = pass.length(b) + 1, rows = part_rows(S);
        for (int64_t h = 0; h < H; ++h)
            a.join(b, h, parts + b * most * room, (S + rows - 1) / rows, room);
    }
    T::round_row(a.latent, H * B * width);
    auto* again = s.take<V>(H * B * pitch<T>(z.latent));
    parallel(pass.run.threads, H,
             [&](int64_t h) { a.expand(h, again + h * B * pitch<T>(z.latent)); });
    T::round_row(a.out, B * H * z.mla_v);
}

}  // namespace

int64_t mla_room(const Sizes& z, int64_t rows) {
    const int64_t most = (rows + PART_ROWS - 1) / PART_ROWS;
    return (most < MOST_PARTS ? most : MOST_PARTS) * Read::room(z.mla_heads, z.latent) +
           queries_room<Fp32>(z.mla_heads, z.latent + z.rope);
}

template <class T>
void mla_layer(Pass& pass, const Layer& layer, const Carried& carried, const float* x,
               float* y) {
    const Sizes& z = pass.z;
    const int64_t B = pass.B(), D = z.D, H = z.mla_heads, dim = z.nope + z.rope;
    const int64_t width = z.latent + z.rope, values = H * z.mla_v;
    Scratch& s = pass.scratch;
    auto* packed = packed_rows<T>(s, x, D, B, D);
    auto* low = s.take<float>(B * z.q_lora);
    auto* row = s.take<float>(B * width);
    auto* gate = s.take<float>(B * values);
    Job jobs[] = {
        dense<T>(layer.q_a, z.q_lora, D, packed, B, low, z.q_lora),
        dense<T>(layer.kv_a, width, D, packed, B, row, width),
        dense<T>(layer.g, values, D, packed, B, gate, values),
    };
    run_jobs<T>(jobs, 3, pass.run.threads);
    auto* weight = static_cast<const typename T::value*>(layer.q_a_norm);
    for (int64_t b = 0; b < B; ++b)
        norm_row<T>(low + b * z.q_lora, weight, z.lora_eps, z.q_lora,
                    low + b * z.q_lora);
    append<T>(pass, layer, carried, row);
    Attention<T> a{pass,
                   layer,
                   carried,
                   s.take<float>(B * H * dim),
                   s.take<float>(H * B * width),
                   s.take<float>(B * values)};
    auto* packed_low = packed_rows<T>(s, low, z.q_lora, B, z.q_lora);
    Job queries = dense<T>(layer.q_b, H * dim, z.q_lora, packed_low, B, a.q, H * dim);
    run_jobs<T>(&queries, 1, pass.run.threads);
    attend_all<T>(pass, a);
    over(B * values, [&](int64_t i, int64_t n) {
        store_n(a.out + i, load_n(a.out + i, n) * sigmoid(load_n(gate + i, n)), n);
    });
    T::round_row(a.out, B * values);
    auto* out = packed_rows<T>(s, a.out, values, B, values);
    Job last = dense<T>(layer.o, D, values, out, B, y, D);
    run_jobs<T>(&last, 1, pass.run.threads);
}

template void mla_layer<Fp32>(Pass&, const Layer&, const Carried&, const float*,
                              float*);
template void mla_layer<Bf16>(Pass&, const Layer&, const Carried&, const float*,
                              float*);
template void mla_layer<Stored>(Pass&, const Layer&, const Carried&, const float*,
                                float*);

}  // namespace k3
