// The routed experts of a layer, and running the chosen ones over some rows.
#pragma once
#include "gemm.h"
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
};

// Rows of one expert in use, at `first` of the assignments sorted by expert.
struct Group {
    int64_t expert, first, count;
};

// Sorts assignments by expert: token and weight of each, and the groups, rising.
// Returns how many experts are in use; `start` is for E + 1 numbers.
int64_t by_expert(const Experts& experts, const Chosen& chosen, Group* groups,
                  int64_t* token, float* weight, int64_t* start);

// out [n L] = sum over chosen experts of weight * w2 SiTU(w1 z, w3 z), in rising order
// of expert.
template <class T>
void run_experts(Scratch& scratch, const Experts& experts, const Chosen& chosen,
                 const float* z, float* out, int64_t threads);

// Bytes of scratch that run_experts takes.
template <class T>
int64_t experts_room(const Experts& experts, const Chosen& chosen);

// run_experts where each expert has many rows; matrices are in `form`.
template <class T>
void run_many(const Experts& experts, const Chosen& chosen, gemm::Form form,
              const typename T::value* z, float* out, int64_t threads);

// Tokens up to which the memory of run_many is small.
int64_t many_at_once(const Experts& experts, const Chosen& chosen, int64_t threads);

}  // namespace k3
