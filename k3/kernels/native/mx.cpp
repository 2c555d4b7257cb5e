// Tables of MXFP4, and decoding whole rows.
#include "mx.h"

#include <cmath>

namespace k3 {

namespace {

struct Tables {
    float scales[256];
    uint32_t pairs[256];
    Tables() {
        const uint16_t sizes[8] = {0x0000, 0x3f00, 0x3f80, 0x3fc0,
                                   0x4000, 0x4040, 0x4080, 0x40c0};
        auto code = [&](int nibble) -> uint32_t {
            return sizes[nibble & 7] | (nibble & 8 ? 0x8000u : 0u);
        };
        for (int b = 0; b < 256; ++b) {
            scales[b] = std::ldexp(1.0f, b - 127);
            pairs[b] = code(b & 15) | code(b >> 4) << 16;
        }
        scales[255] = std::nanf("");
    }
};
const Tables tables;

}  // namespace

const float* const E8M0 = tables.scales;
const uint32_t* const E2M1_PAIRS = tables.pairs;

}  // namespace k3
