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

// *differs = whether a word is not what it was. The address of each is of an object
// that lives as long as the words before it are what they were.
K3_API void k3_words_differ(const int64_t* at, const int64_t* was, int64_t count,
                            int64_t* differs) {
    *differs = 1;
    for (int64_t i = 0; i < count; ++i)
        if (*reinterpret_cast<const volatile int64_t*>(at[i]) != was[i]) return;
    *differs = 0;
}
