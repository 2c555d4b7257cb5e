// The values of MXFP4's scale bytes.
#include "mx.h"

#include <cmath>

namespace k3 {

namespace {

struct Scales {
    float of[256];
    Scales() {
        for (int e = 0; e < 256; ++e) of[e] = std::ldexp(1.0f, e - 127);
        of[255] = std::nanf("");
    }
};
const Scales scales;

}  // namespace

const float* const E8M0 = scales.of;

}  // namespace k3
