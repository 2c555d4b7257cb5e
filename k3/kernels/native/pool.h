// One parallel loop for all kernels.
//
// Tasks are independent and each is always computed the same way, so a result has
// the same bits for any number of threads. The threads are those of torch's own
// OpenMP runtime where Python found it (two pools would fight for the cores), and
// threads started for the call otherwise, as in a forked child, where a copied
// OpenMP pool would hang.
#pragma once
#include <cstdint>

namespace k3 {

using Task = void (*)(void* context, int64_t index);

// Calls task(context, i) for every i below count, on at most `threads` threads.
void run(int64_t threads, int64_t count, Task task, void* context);

template <class F>
void parallel(int64_t threads, int64_t count, F&& f) {
    if (threads <= 1 || count <= 1) {
        for (int64_t i = 0; i < count; ++i) f(i);
        return;
    }
    auto call = [](void* context, int64_t i) { (*static_cast<F*>(context))(i); };
    run(threads, count, call, const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace k3
