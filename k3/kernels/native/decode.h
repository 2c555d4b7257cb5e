// The decode step of the whole model: what Python hands over, and the parts of a layer.
// A step runs the next `tokens` of each sequence; row r is token r % tokens of sequence
// r / tokens.
//
// Every field has eight bytes; kernels/native/decode.py lists them in the same order.
#pragma once
#include "jobs.h"

namespace k3 {

struct Sizes {
    int64_t D, vocab, layers;
    int64_t kda_heads, K, V, past;
    int64_t mla_heads, nope, rope, mla_v, q_lora, latent;
    int64_t E, active, L, F;
    double eps, lora_eps, lower_bound, beta, linear_beta, scaling;
    int64_t has_lower_bound;
};

// One layer. Pointers are to the trunk's dtype unless said otherwise, those of matrices
// to what it holds them in; those of the other kind of mixer or feed-forward are null.
struct Layer {
    int64_t is_mla, is_moe, starts_block;
    const void *input_norm, *post_norm, *attn_res_norm, *attn_res_proj;
    const void *mlp_res_norm, *mlp_res_proj;
    // KDA; convolutions [C past+1], A_log, dt_bias and the output norm in fp32
    const void *q, *k, *v, *f_a, *f_b, *b, *g, *o;
    const float *q_conv, *k_conv, *v_conv, *A_log, *dt_bias, *o_norm;
    // MLA, with g and o above
    const void *q_a, *q_a_norm, *q_b, *kv_a, *kv_a_norm, *kv_b;
    // dense feed-forward, or the shared experts
    int64_t width;
    const void *gate, *up, *down;
    // routed experts: addresses of E matrices each; scales where they are MXFP4
    const void* router;
    const float* router_bias;
    const void *latent_down, *latent_norm, *latent_up;
    const void *const *w1, *const *w2, *const *w3;
    const uint8_t *const *s1, *const *s2, *const *s3;
};

// What a layer carries for B sequences: KDA's memory [B H V K] and window [B past C],
// read from `in` and written to `out`, which may be the same and which the next step
// reads; or latent rows,
// sequence b at rows + b * stride.
struct Carried {
    const float* state_in;
    float* state_out;
    const void* window_in;
    void* window_out;
    void* rows;
    int64_t stride;
    // Where the inputs of each row are kept for a rewind, or null: raw [rows C] in the
    // trunk's dtype, k, v, g and beta in fp32.
    void* kept_raw;
    float *kept_k, *kept_v, *kept_g, *kept_beta;
};

struct Model {
    const Sizes* sizes;
    const Layer* layers;
    const void *embed, *output_res_norm, *output_res_proj, *norm, *head;
};

struct Run {
    int64_t batch, tokens, threads;
    const int64_t* ids;  // [batch tokens]
    const int64_t* lens;  // tokens behind each sequence
    Carried* carried;
    // Where KDA layers, one after the other, leave their memories and windows.
    float* states;
    void* windows;
    float* logits;
    // What each layer leaves to whoever asked, or null: the running sum behind it
    // [layers rows D] in the trunk's dtype, and the experts of each row and their
    // weights [layers rows active].
    void* sums;
    int64_t* index;
    float* weights;
    int64_t refused;  // set to 1, with nothing else done, where an id is no token
};

// One pass of the step: the sizes, what runs, and its memory.
struct Pass {
    const Sizes& z;
    const Run& run;
    Scratch& scratch;
    int64_t kda_layers = 0, layer = 0;
    int64_t B() const { return run.batch * run.tokens; }
    int64_t sequence(int64_t row) const { return row / run.tokens; }
    // Tokens of the sequence before that of a row.
    int64_t length(int64_t row) const {
        return run.lens[sequence(row)] + row % run.tokens;
    }
};

// y [rows D] of a layer's mixer or feed-forward over its normed input x [rows D].
template <class T>
void kda_layer(Pass& pass, const Layer& layer, const Carried& carried, const float* x,
               float* y);
template <class T>
void mla_layer(Pass& pass, const Layer& layer, const Carried& carried, const float* x,
               float* y);
// Floats that one token's attention over so many rows takes.
int64_t mla_room(const Sizes& sizes, int64_t rows);
template <class T>
void mlp_layer(Pass& pass, const Layer& layer, const float* x, float* y);
template <class T>
void moe_layer(Pass& pass, const Layer& layer, const float* x, float* y);

// out [D] = weight * x / rms(x), rounded as the trunk's modules round.
template <class T>
void norm_row(const float* x, const typename T::value* weight, double eps, int64_t D,
              float* out);

// gate = SiTU(gate, up), rounded.
template <class T>
void situ_row(float* gate, const float* up, int64_t n, double beta, double linear_beta);

// The job of a dense product of the trunk, rows of x packed.
template <class T>
Job dense(const void* w, int64_t rows, int64_t cols, const void* x, int64_t batch,
          float* y, int64_t ldy) {
    return Job{{w, nullptr}, rows, cols, x, batch, y, ldy};
}

}  // namespace k3
