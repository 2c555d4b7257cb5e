// The kernels' own code in one large page. Copies of the library that are the same byte
// for byte differed by a tenth with the small pages that they happened to lie in.
#include "api.h"

#if defined(__linux__)
#include <link.h>
#include <sys/mman.h>

#include <cstring>

namespace {

constexpr uintptr_t PAGE = uintptr_t{2} << 20;

// Where this library's code lies, in whole large pages, and how much of it is code.
struct Code {
    uintptr_t start = 0, bytes = 0, size = 0;
    bool alone = false;  // whether nothing else lies in these pages
};

int find(dl_phdr_info* info, size_t, void* context) {
    auto* code = static_cast<Code*>(context);
    const auto here = reinterpret_cast<uintptr_t>(&find);
    auto start = [&](int i) { return info->dlpi_addr + info->dlpi_phdr[i].p_vaddr; };
    int own = -1;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        if (part.p_type == PT_LOAD && (part.p_flags & PF_X) && here >= start(i) &&
            here < start(i) + part.p_memsz)
            own = i;
    }
    if (own < 0) return 0;
    code->start = start(own);
    code->bytes = info->dlpi_phdr[own].p_memsz;
    code->size = (code->bytes + PAGE - 1) / PAGE * PAGE;
    code->alone = code->start % PAGE == 0;
    for (int i = 0; i < info->dlpi_phnum; ++i)
        if (i != own && info->dlpi_phdr[i].p_type == PT_LOAD)
            code->alone &= start(i) >= code->start + code->size;
    return 1;
}

// A copy of the code in large pages of its own, or null where there are none.
char* copy(const Code& code) {
    constexpr int collapse = 25;  // MADV_COLLAPSE, Linux 6.1
    const size_t all = code.size + PAGE;
    void* got = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
    if (got == MAP_FAILED) return nullptr;
    auto* first = static_cast<char*>(got);
    auto* at = first + (PAGE - reinterpret_cast<uintptr_t>(got) % PAGE) % PAGE;
    std::memcpy(at, reinterpret_cast<void*>(code.start), code.bytes);
    const bool large = !madvise(at, code.size, collapse) &&
                       !mprotect(at, code.size, PROT_READ | PROT_EXEC);
    if (!large) {
        munmap(first, all);
        return nullptr;
    }
    if (at > first) munmap(first, static_cast<size_t>(at - first));
    const size_t rest = all - code.size - static_cast<size_t>(at - first);
    if (rest) munmap(at + code.size, rest);
    return at;
}

}  // namespace
#endif

// Moves the code of this library into large pages, at the addresses where it is; other
// threads may run it meanwhile. Sets *done to whether it lies there; where a kernel, a
// linker or a policy forbids, nothing changes.
K3_API void k3_code_pages(int64_t* done) {
    *done = 0;
#if defined(__linux__)
    Code code;
    dl_iterate_phdr(find, &code);
    if (!code.alone) return;
    char* made = copy(code);
    if (!made) return;
    void* to = reinterpret_cast<void*>(code.start);
    *done = mremap(made, code.size, code.size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
    if (!*done) munmap(made, code.size);
#endif
}
