// What a judge needs of C: random inputs, right answers in doubles, the largest error.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next(uint64_t *s) {
  uint64_t z = (*s += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// count values between low and high
void fill(float *x, long count, uint64_t seed, float low, float high) {
  for (long i = 0; i < count; i++)
    x[i] = low + (high - low) * (float)(next(&seed) >> 40) * 0x1p-24f;
}

static void rmsnorm(const float *x, const float *w, double *y, long cols, double c) {
  double sum = 0;
  for (long j = 0; j < cols; j++) sum += (double)x[j] * x[j];
  double r = 1 / sqrt(sum / cols + c);
  for (long j = 0; j < cols; j++) y[j] = x[j] * r * w[j];
}

static void softmax(const float *x, const float *w, double *y, long cols, double c) {
  double most = -INFINITY, sum = 0;
  int nan = 0;
  for (long j = 0; j < cols; j++) {
    y[j] = (x[j] + (double)w[j]) * c;
    nan |= isnan(y[j]);
    if (y[j] > most) most = y[j];
  }
  if (nan) most = NAN;
  for (long j = 0; j < cols; j++) sum += y[j] = exp(y[j] - most);
  for (long j = 0; j < cols; j++) y[j] /= sum;
}

// before: the row above, in doubles, or 0 for the first
static void scan(const float *x, const float *w, double *y, const double *before,
                 long cols, double c) {
  for (long j = 0; j < cols; j++)
    y[j] = (before ? before[j] * w[j] : 0) + c * (double)x[j];
}

// The largest error of y, relative to the row's largest right value; values that are
// not finite must be the same. -1 where they are not.
double error(const float *x, const float *y, long rows, long cols, int op, double c) {
  double *right = malloc(2 * cols * sizeof(double)), worst = 0;
  const float *w = x + rows * cols;
  for (long i = 0; i < rows && worst >= 0; i++) {
    double *row = right + (i % 2) * cols, *above = right + (1 - i % 2) * cols;
    if (op == 0) rmsnorm(x + i * cols, w, row, cols, c);
    if (op == 1) softmax(x + i * cols, w, row, cols, c);
    if (op == 2) scan(x + i * cols, w, row, i ? above : 0, cols, c);
    double largest = 1e-30, off = 0;
    for (long j = 0; j < cols; j++)
      if (isfinite(row[j])) largest = fmax(largest, fabs(row[j]));
    for (long j = 0; j < cols; j++) {
      double got = y[i * cols + j];
      if (isfinite(row[j]) && isfinite(got)) off = fmax(off, fabs(got - row[j]));
      else if (isnan(row[j]) ? !isnan(got) : got != row[j]) worst = -1;
    }
    if (worst >= 0) worst = fmax(worst, off / largest);
  }
  free(right);
  return worst;
}
