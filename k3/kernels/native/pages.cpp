// Large pages under weights: with small ones, page tables take half of the time of a
// stream of weights.
#include "api.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

// Asks that what lies from `start` to `stop` be backed by large pages at once, as far
// as whole ones fit; contents do not change, and a kernel that cannot leaves them.
K3_API void k3_large_pages(int64_t start, int64_t stop) {
#if defined(__linux__)
    constexpr int64_t page = int64_t{2} << 20;
    constexpr int collapse = 25;  // MADV_COLLAPSE, Linux 6.1
    start = (start + page - 1) / page * page;
    stop = stop / page * page;
    if (start < stop)
        madvise(reinterpret_cast<void*>(start), static_cast<size_t>(stop - start),
                collapse);
#endif
}
