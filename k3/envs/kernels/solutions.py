"""Kernels of a perfect agent: rows at a time, with GCC's vectors."""

_VECTORS = """\
#include <math.h>
#include <string.h>
typedef float V __attribute__((vector_size(64)));
typedef int I __attribute__((vector_size(64)));
static inline V get(const float *p) { V v; memcpy(&v, p, 64); return v; }
static inline void put(float *p, V v) { memcpy(p, &v, 64); }
static inline float total(V v) {
  float s = 0;
  for (int i = 0; i < 16; i++) s += v[i];
  return s;
}
void kernel(const float *x, const float *w, float *y, long rows, long cols) {
"""
_RMSNORM = """\
  for (long i = 0; i < rows; i++, x += cols, y += cols) {
    V a = {0}, b = {0}, c = {0}, d = {0};
    long j = 0;
    for (; j + 64 <= cols; j += 64) {
      V p = get(x + j), q = get(x + j + 16), r = get(x + j + 32), s = get(x + j + 48);
      a += p * p; b += q * q; c += r * r; d += s * s;
    }
    float sum = total(a + b + c + d);
    for (; j < cols; j++) sum += x[j] * x[j];
    float r = 1 / sqrtf(sum / cols + (float){c});
    for (j = 0; j < cols; j++) y[j] = x[j] * r * w[j];
  }
}
"""
# exp by 2^n times a polynomial of the rest; rows that are not finite go the plain way.
_SOFTMAX = """\
  for (long i = 0; i < rows; i++, x += cols, y += cols) {
    V most = {0}, odd = {0};
    for (int k = 0; k < 16; k++) most[k] = -INFINITY;
    long j = 0;
    for (; j + 16 <= cols; j += 16) {
      V z = (get(x + j) + get(w + j)) * (float){c};
      put(y + j, z);
      odd += z * 0;
      I more = z > most;
      most = (V)(((I)z & more) | ((I)most & ~more));
    }
    float top = -INFINITY, finite = total(odd), sum = 0;
    for (int k = 0; k < 16; k++) if (most[k] > top) top = most[k];
    int nan = 0;
    for (; j < cols; j++) {
      y[j] = (x[j] + w[j]) * (float){c};
      finite += y[j] * 0;
      if (y[j] > top) top = y[j];
    }
    if (finite != 0) {
      for (j = 0; j < cols; j++) nan |= isnan(y[j]);
      if (nan) top = NAN;
      for (j = 0; j < cols; j++) sum += y[j] = expf(y[j] - top);
    } else {
      V sums = {0};
      for (j = 0; j + 16 <= cols; j += 16) {
        V z = (get(y + j) - top) * 1.44269504f;
        I low = z > -126.0f;
        z = (V)((I)z & low);
        V shift = z + 12582912.0f;
        V n = shift - 12582912.0f, f = (z - n) * 0.693147181f;
        V p = 1.0f + f * (1.0f + f * (0.5f + f * (0.166666667f + f * (0.0416666667f
            + f * (0.00833333333f + f * 0.00138888889f)))));
        I e = __builtin_convertvector(n, I) << 23;
        p = (V)(((I)p + e) & low);
        put(y + j, p);
        sums += p;
      }
      sum = total(sums);
      for (; j < cols; j++) sum += y[j] = expf(y[j] - top);
    }
    float one = 1 / sum;
    for (j = 0; j < cols; j++) y[j] *= one;
  }
}
"""
_SCAN = """\
  for (long j = 0; j < cols && rows; j++) y[j] = (float){c} * x[j];
  for (long i = 1; i < rows; i++) {
    const float *above = y + (i - 1) * cols, *in = x + i * cols;
    float *out = y + i * cols;
#pragma GCC ivdep
    for (long j = 0; j < cols; j++) out[j] = w[j] * above[j] + (float){c} * in[j];
  }
}
"""
_BODIES = {"rmsnorm": _RMSNORM, "softmax": _SOFTMAX, "scan": _SCAN}


def solution(name: str, constant: float) -> str:
    """The C file for an operation and its constant."""
    return _VECTORS + _BODIES[name].replace("{c}", repr(constant))
