// The parallel loop: tasks are taken one by one from a counter that all threads share.
#include "api.h"
#include "pool.h"

#include <pthread.h>
#include <unistd.h>

namespace {

struct Loop {
    int64_t count;
    k3::Task task;
    void* context;
    int64_t next;
};

void work(void* argument) {
    auto* loop = static_cast<Loop*>(argument);
    for (;;) {
        int64_t i = __atomic_fetch_add(&loop->next, 1, __ATOMIC_RELAXED);
        if (i >= loop->count) return;
        loop->task(loop->context, i);
    }
}

void* thread_main(void* argument) {
    work(argument);
    return nullptr;
}

// GOMP_parallel: runs work(loop) on a number of threads, the caller's among them.
using Omp = void (*)(void (*)(void*), void*, unsigned, unsigned);
Omp omp = nullptr;
pid_t owner = 0;

void run_started(int64_t threads, Loop* loop) {
    constexpr int64_t most = 64;
    pthread_t started[most];
    int64_t others = 0;
    while (others < threads - 1 && others < most) {
        if (pthread_create(&started[others], nullptr, thread_main, loop)) break;
        ++others;
    }
    work(loop);
    for (int64_t i = 0; i < others; ++i) pthread_join(started[i], nullptr);
}

}  // namespace

void k3::run(int64_t threads, int64_t count, Task task, void* context) {
    Loop loop{count, task, context, 0};
    // A team of another size than torch's would be built anew, so never a smaller one.
    if (omp && getpid() == owner) {
        omp(work, &loop, static_cast<unsigned>(threads), 0);
    } else {
        run_started(threads < count ? threads : count, &loop);
    }
}

// Takes the address of GOMP_parallel in the library that torch has loaded.
K3_API void k3_use_omp(void* gomp_parallel) {
    omp = reinterpret_cast<Omp>(gomp_parallel);
    owner = getpid();
}
