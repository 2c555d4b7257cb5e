// What Python calls: K3_API void k3_<concept>_<what>(pointers, int64_t, float).
#pragma once
#include <cstdint>

#define K3_API extern "C" __attribute__((visibility("default")))
