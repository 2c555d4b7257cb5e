// Calls a kernel whenever its judge says so, on memory that both share.
// argv: the file of the input, that of the output, rows, columns. A byte on standard
// input is a call, the same byte on standard output is its end.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void kernel(const float *x, const float *w, float *y, long rows, long cols);

static float *shared(const char *path, long count, int writable) {
  int file = open(path, writable ? O_RDWR : O_RDONLY);
  if (file < 0) _exit(3);
  int how = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  float *found = mmap(0, count * sizeof(float), how, MAP_SHARED, file, 0);
  if (found == MAP_FAILED) _exit(4);
  close(file);
  return found;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  long rows = atol(argv[3]), cols = atol(argv[4]);
  // The weights stand behind the input; both can only be read.
  float *x = shared(argv[1], rows * cols + cols, 0);
  float *y = shared(argv[2], rows * cols, 1);
  char call;
  while (read(0, &call, 1) == 1) {
    kernel(x, x + rows * cols, y, rows, cols);
    if (write(1, &call, 1) != 1) return 5;
  }
  return 0;
}
