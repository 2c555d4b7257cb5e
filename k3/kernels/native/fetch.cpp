// Memory that will be looked at soon, brought near all at once.
#include "api.h"

// Brings the cache lines of `held` addresses, which must be of living objects, and asks
// for those of `hints` addresses, which may be of memory that is gone.
K3_API void k3_fetch(const int64_t* held, int64_t num_held, const int64_t* hints,
                     int64_t num_hints) {
    for (int64_t i = 0; i < num_hints; ++i)
        __builtin_prefetch(reinterpret_cast<const void*>(hints[i]), 0, 3);
    for (int64_t i = 0; i < num_held; ++i)
        (void)*reinterpret_cast<const volatile char*>(held[i]);
}
