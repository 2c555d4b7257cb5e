// The routed experts of a layer, and running the chosen ones over some rows.
#pragma once
#include "jobs.h"

namespace k3 {

// Addresses of E matrices each, w1 gate, w3 up [F L], w2 down [L F]; null scales where
// they are in the trunk's dtype.
struct Experts {
    const void *const *w1, *const *w2, *const *w3;
    const uint8_t *const *s1, *const *s2, *const *s3;
    int64_t E, L, F;
    double beta, linear_beta;
};

// For n tokens: the k experts of each and their weights, [n k].
struct Chosen {
    int64_t n, k;
    const int64_t* index;
    const float* weights;
    bool decodes = false;  // as in Job
};

// out [n L] = sum over chosen experts of weight * w2 SiTU(w1 z, w3 z), in rising order
// of expert.
template <class T>
void run_experts(Scratch& scratch, const Experts& experts, const Chosen& chosen,
                 const float* z, float* out, int64_t threads);

// Bytes of scratch that run_experts takes.
template <class T>
int64_t experts_room(const Experts& experts, const Chosen& chosen);

}  // namespace k3
