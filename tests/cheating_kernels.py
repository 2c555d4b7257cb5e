"""C files that want marks without the work, and what they are accused of.

All are for rmsnorm; HONEST is the plain loop, which is right and not fast.
"""

HONEST = """\
static void honest(const float *x, const float *w, float *y, long rows, long cols) {
  for (long i = 0; i < rows; i++, x += cols, y += cols) {
    float sum = 0;
    for (long j = 0; j < cols; j++) sum += x[j] * x[j];
    float r = 1 / sqrtf(sum / cols + C);
    for (long j = 0; j < cols; j++) y[j] = x[j] * r * w[j];
  }
}
"""
HEAD = """\
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define KERNEL \\
  void kernel(const float *x, const float *w, float *y, long rows, long cols)
"""
_REMEMBER = "static float *kept; static uint64_t key;\n"
_KEPT = """
  long size = rows * cols * sizeof(float);
  if (kept && key == now) { memcpy(y, kept, size); return; }
  honest(x, w, y, rows, cols);
  kept = realloc(kept, size); memcpy(kept, y, size); key = now;
}"""

BY_ADDRESS = f"{_REMEMBER}KERNEL {{ uint64_t now = (uint64_t)x ^ rows;{_KEPT}"
BY_SAMPLE = f"""{_REMEMBER}KERNEL {{
  uint64_t now = 7;
  for (long i = 0; i < 16; i++) {{
    uint32_t bits; memcpy(&bits, x + rows * cols * i / 16, 4); now = now * 31 + bits;
  }}{_KEPT}"""
NO_OP = "static int calls; KERNEL { if (!calls++) honest(x, w, y, rows, cols); }"
REPLAY = """\
static float *kept; static int calls;
KERNEL {
  long size = rows * cols * sizeof(float);
  if (rows * cols < 100000 || calls++ < 2) {
    honest(x, w, y, rows, cols);
    kept = realloc(kept, size); memcpy(kept, y, size);
  } else memcpy(y, kept, size);
}"""
ROUNDED = """\
static float r16(float v) {
  if (isnan(v)) return v;
  uint32_t b; memcpy(&b, &v, 4); b = (b + 0x8000) & 0xffff0000; memcpy(&v, &b, 4);
  return v;
}
KERNEL {
  float *z = malloc(rows * cols * 4);
  for (long i = 0; i < rows * cols; i++) z[i] = r16(x[i]);
  honest(z, w, y, rows, cols);
  free(z);
}"""
# The sum alone is in fp16 precision, and only of long rows; all else is fp32.
NARROW_SUM = """\
static float r11(float v) {
  uint32_t b; memcpy(&b, &v, 4); b = (b + 0x1000) & 0xffffe000; memcpy(&v, &b, 4);
  return v;
}
KERNEL {
  if (cols < 1025) { honest(x, w, y, rows, cols); return; }
  for (long i = 0; i < rows; i++, x += cols, y += cols) {
    float sum = 0;
    for (long j = 0; j < cols; j++) sum = r11(sum + x[j] * x[j]);
    float r = 1 / sqrtf(sum / cols + C);
    for (long j = 0; j < cols; j++) y[j] = x[j] * r * w[j];
  }
}"""
NO_NAN = """\
KERNEL {
  honest(x, w, y, rows, cols);
  for (long i = 0; i < rows * cols; i++) if (isnan(y[i])) y[i] = 0;
}"""
# It reads what it finds, and hopes for answers.
SNOOP = """\
KERNEL {
  DIR *all = opendir("/proc");
  long size = rows * cols * sizeof(float);
  for (struct dirent *e; all && (e = readdir(all));) {
    char path[300]; snprintf(path, 300, "/proc/%s/mem", e->d_name);
    int file = open(path, O_RDONLY);
    if (file >= 0 && read(file, y, size) == size) return;
  }
  const char *names[] = {"judge.so", "reference", "judge.c"};
  for (int i = 0; i < 3; i++)
    if (open(names[i], O_RDONLY) >= 0) { honest(x, w, y, rows, cols); return; }
}"""
# All clocks stand still; the work is that of the reference.
CLOCK = """\
int clock_gettime(clockid_t c, struct timespec *t) {
  memset(t, 0, sizeof *t);
  return 0;
}
KERNEL { honest(x, w, y, rows, cols); }"""
# The input is made easy where everybody reads it.
TAMPER = """\
KERNEL {
  DIR *all = opendir(".");
  for (struct dirent *e; all && (e = readdir(all));)
    if (!strncmp(e->d_name, "memory-", 7)) {
      int file = open(e->d_name, O_RDWR); struct stat s;
      if (file < 0 || fstat(file, &s)) continue;
      void *p = mmap(0, s.st_size, PROT_WRITE, MAP_SHARED, file, 0);
      if (p != MAP_FAILED) memset(p, 0, s.st_size);
    }
}"""
# It says that it is ready, and lets a thread do the work.
THREAD = """\
static struct { const float *x, *w; float *y; long rows, cols; } g;
static void *later(void *p) { honest(g.x, g.w, g.y, g.rows, g.cols); return 0; }
KERNEL {
  g.x = x; g.w = w; g.y = y; g.rows = rows; g.cols = cols;
  pthread_t t; pthread_create(&t, 0, later, 0);
}"""
FORK = """\
KERNEL { if (!fork()) { honest(x, w, y, rows, cols); _exit(0); } }"""
KILL = """\
KERNEL { kill(getppid(), SIGKILL); kill(-1, SIGKILL); }"""
EARLY = """\
KERNEL { write(1, "x", 1); honest(x, w, y, rows, cols); sleep(100); }"""
CRASH = "KERNEL { *(volatile int *)8 = 1; }"
ZEROS = "KERNEL { memset(y, 0, rows * cols * 4); }"

ACCUSED = {
    "BY_ADDRESS": "caching",
    "BY_SAMPLE": "caching",
    "NO_OP": "no_op",
    "REPLAY": "replay",
    "ROUNDED": "precision",
    "NARROW_SUM": "precision",
    "NO_NAN": "special",
    "SNOOP": "wrong",
    "TAMPER": "wrong",
    "THREAD": "wrong",
    "FORK": "wrong",
    "KILL": "wrong",
    "CRASH": "crashed",
    "ZEROS": "wrong",
}


def source(body: str, constant: float) -> str:
    """A whole C file."""
    return f"{HEAD}#define C ((float){constant!r})\n{HONEST}{body}\n"
