// Values rounded to MXFP4, as kernels/mx.py does in fp32: codes and scale bytes, or the
// rounded values themselves.
#include "api.h"
#include "mx.h"
#include "pool.h"
#include "simd.h"

namespace {

using namespace k3;

constexpr int64_t PARTS = GROUP / W, BLOCK = 512;
constexpr int32_t SIGN = INT32_MIN;

// The scale byte of a group, from the bits of its largest magnitude: 2^(byte - 127) is
// two binades below it, one more from 1.75 * 2^k on or, to saturate nowhere, beyond
// 1.5 * 2^k.
int32_t scale_byte(int32_t most, bool ceil) {
    const int32_t mantissa = most & 0x7fffff;
    const bool up = ceil ? mantissa > 0x400000 : mantissa >= 0x600000;
    const int32_t byte = (most >> 23) - 2 + up;
    return most == 0 || byte < 0 ? 0 : byte;
}

float power(int32_t exponent) {
    const uint32_t bits = static_cast<uint32_t>(exponent + 127) << 23;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
}

// Half-way values go to the even one; below 2^22.
vec nearest(vec x) { return x + 12582912.0f - 12582912.0f; }
vec lesser(vec a, vec b) { return b < a ? b : a; }

// The code of a magnitude: codes step by 1/2 below 2, by 1 below 4, by 2 above, and the
// least of three is right.
vec code_of(vec size) {
    const vec code = lesser(nearest(size + size), nearest(size) + 2.0f);
    return lesser(lesser(code, nearest(size * 0.5f) + 4.0f), broadcast(7.0f));
}

vec value_of(vec code) {
    return code < 4.0f ? code * 0.5f : code < 6.0f ? code - 2.0f : code * 2.0f - 8.0f;
}

// Groups begin .. end of x; false where one is not finite. `put` takes a group, its
// scale byte, the signs and the codes of each part.
template <class Put>
bool groups(const float* x, int64_t begin, int64_t end, bool ceil, Put&& put) {
    int32_t worst = 0;
    for (int64_t g = begin; g < end; ++g) {
        ivec bits[PARTS], most = {};
        for (int64_t i = 0; i < PARTS; ++i) {
            bits[i] = (ivec)load(x + g * GROUP + i * W);
            const ivec size = bits[i] & ~SIGN;
            most = size > most ? size : most;
        }
        int32_t greatest = 0;
        for (int i = 0; i < W; ++i) greatest = most[i] > greatest ? most[i] : greatest;
        worst = greatest > worst ? greatest : worst;
        const int32_t byte = scale_byte(greatest, ceil);
        const float back = power(127 - byte);
        vec codes[PARTS];
        for (int64_t i = 0; i < PARTS; ++i)
            codes[i] = code_of((vec)(bits[i] & ~SIGN) * back);
        put(g, byte, bits, codes);
    }
    return worst < 0x7f800000;
}

// Calls run(begin, end) on blocks of groups; whether all of them said yes.
template <class F>
bool blocks(int64_t count, int64_t threads, F&& run) {
    const int64_t all = (count + BLOCK - 1) / BLOCK;
    bool good = true;
    parallel(count < 2 * BLOCK ? 1 : threads, all, [&](int64_t b) {
        const int64_t begin = b * BLOCK, left = count - begin;
        // Never set back, so that it does not matter who writes last.
        if (!run(begin, begin + (left < BLOCK ? left : BLOCK)))
            __atomic_store_n(&good, false, __ATOMIC_RELAXED);
    });
    return good;
}

}  // namespace

// packed [count 16] and scale [count] of x [count 32]; good: all of it is finite.
K3_API void k3_mx_encode(const float* x, int64_t count, int64_t ceil, uint8_t* packed,
                         uint8_t* scale, uint8_t* good, int64_t threads) {
    *good = blocks(count, threads, [&](int64_t begin, int64_t end) {
        return groups(x, begin, end, ceil, [&](int64_t g, int32_t byte,
                                               const ivec* bits, const vec* codes) {
            scale[g] = static_cast<uint8_t>(byte);
            uint8_t each[GROUP];
            for (int64_t i = 0; i < PARTS; ++i) {
                // A sign is bit 31, and bit 3 of a code.
                const ivec sign = (ivec)((uvec)bits[i] >> 28) & 8;
                const ivec code = __builtin_convertvector(codes[i], ivec) | sign;
                for (int j = 0; j < W; ++j)
                    each[i * W + j] = static_cast<uint8_t>(code[j]);
            }
            for (int64_t j = 0; j < GROUP / 2; ++j)
                packed[g * (GROUP / 2) + j] = each[2 * j] | each[2 * j + 1] << 4;
        });
    });
}

// out [count 32]: what decoding gives of it.
K3_API void k3_mx_round(const float* x, int64_t count, int64_t ceil, float* out,
                        uint8_t* good, int64_t threads) {
    *good = blocks(count, threads, [&](int64_t begin, int64_t end) {
        return groups(x, begin, end, ceil, [&](int64_t g, int32_t byte,
                                               const ivec* bits, const vec* codes) {
            const float factor = E8M0[byte];
            for (int64_t i = 0; i < PARTS; ++i) {
                const ivec value = (ivec)(value_of(codes[i]) * factor);
                store(out + g * GROUP + i * W, (vec)(value | (bits[i] & SIGN)));
            }
        });
    });
}
