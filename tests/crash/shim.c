/* Counts the calls that change files below a folder, over all threads of a process, and lets the
 * n-th of them be the process's last one, or fail. Loaded before libc (LD_PRELOAD); idle until
 * `crash_arm`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long counted;
static long at;
static int fails, half, ever, log_fd = -1;
static char root[PATH_MAX];
static size_t root_length;
static __thread int inside;

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* Count what happens below `folder` and write a line "name path" for it to `log`, beforehand.
 * `number` is counted from 1; 0 is none. The call is killed where `error` is 0, after half of the
 * bytes it writes with `by_half`; else it fails with that errno, and so does every later one with
 * `for_ever`. */
int crash_arm(const char *folder, const char *log, long number, int error, int by_half,
              int for_ever) {
  if (!realpath(folder, root)) return -1;
  at = number, fails = error, half = by_half, ever = for_ever;
  log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  root_length = strlen(root);
  return log_fd;
}

static int below(const char *path) {
  return root_length && !strncmp(path, root, root_length) && path[root_length] == '/';
}

/* 0: go on; 1: fail with errno set; 2: write half, then die. */
static int count(const char *name, const char *path) {
  if (!below(path)) return 0;
  long n = atomic_fetch_add(&counted, 1) + 1;
  if (log_fd >= 0) {
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%s %s\n", name, path + root_length + 1);
    inside = 1;
    if (write(log_fd, line, (size_t)length) < 0) _exit(99);
    inside = 0;
  }
  if (!at || n < at || (n > at && !ever)) return 0;
  if (fails) {
    errno = fails;
    return 1;
  }
  if (half) return 2;
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static int count_fd(const char *name, int fd) {
  if (inside || !root_length) return 0;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return count(name, path);
}

static int count_path(const char *name, const char *path) {
  char full[PATH_MAX], parent[PATH_MAX];
  if (inside || !root_length) return 0;
  /* The file need not exist, its folder must. */
  snprintf(parent, sizeof parent, "%s", path);
  char *slash = strrchr(parent, '/');
  if (slash) *slash = 0; else strcpy(parent, ".");
  char folder[PATH_MAX];
  if (!realpath(*parent ? parent : "/", folder)) return 0;
  if (snprintf(full, sizeof full, "%s/%s", folder, slash ? slash + 1 : path) >= PATH_MAX) return 0;
  return count(name, full);
}

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

ssize_t write(int fd, const void *buffer, size_t size) {
  REAL(write);
  switch (count_fd("write", fd)) {
    case 1: return -1;
    case 2: real(fd, buffer, size / 2); die();
  }
  return real(fd, buffer, size);
}

ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t offset) {
  REAL(pwrite64);
  switch (count_fd("pwrite", fd)) {
    case 1: return -1;
    case 2: real(fd, buffer, size / 2, offset); die();
  }
  return real(fd, buffer, size, offset);
}

ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset) {
  return pwrite64(fd, buffer, size, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int number) {
  REAL(writev);
  switch (count_fd("writev", fd)) {
    case 1: return -1;
    case 2: real(fd, parts, number / 2); die();
  }
  return real(fd, parts, number);
}

#define ON_FD(name, declared, ...) \
  int name declared { \
    REAL(name); \
    int what = count_fd(#name, fd); \
    if (what == 1) return -1; \
    if (what == 2) die(); \
    return real(__VA_ARGS__); \
  }

ON_FD(fsync, (int fd), fd)
ON_FD(fdatasync, (int fd), fd)
ON_FD(ftruncate, (int fd, off_t size), fd, size)
ON_FD(ftruncate64, (int fd, off64_t size), fd, size)
ON_FD(fallocate, (int fd, int mode, off_t offset, off_t size), fd, mode, offset, size)

/* These return the error instead of setting errno. */
int posix_fallocate(int fd, off_t offset, off_t size) {
  REAL(posix_fallocate);
  int what = count_fd("posix_fallocate", fd);
  if (what == 1) return errno;
  if (what == 2) die();
  return real(fd, offset, size);
}

int posix_fallocate64(int fd, off64_t offset, off64_t size) {
  REAL(posix_fallocate64);
  int what = count_fd("posix_fallocate", fd);
  if (what == 1) return errno;
  if (what == 2) die();
  return real(fd, offset, size);
}

#define ON_PATH(name, declared, path, ...) \
  int name declared { \
    REAL(name); \
    int what = count_path(#name, path); \
    if (what == 1) return -1; \
    if (what == 2) die(); \
    return real(__VA_ARGS__); \
  }

ON_PATH(rename, (const char *from, const char *to), to, from, to)
ON_PATH(unlink, (const char *path), path, path)
ON_PATH(rmdir, (const char *path), path, path)
ON_PATH(mkdir, (const char *path, mode_t mode), path, path, mode)
ON_PATH(truncate, (const char *path, off_t size), path, path, size)

/* An unlink within a folder that is open, as Python's and Rust's removal of trees do it. */
int unlinkat(int folder, const char *path, int flags) {
  REAL(unlinkat);
  int what = *path == '/' ? count_path("unlinkat", path) : count_fd("unlinkat", folder);
  if (what == 1) return -1;
  if (what == 2) die();
  return real(folder, path, flags);
}

/* A memory map is written without a call; its pages are told to the disk by one. */
int msync(void *start, size_t size, int flags) {
  REAL(msync);
  if (!inside && root_length) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/a memory map", root);
    int what = count("msync", path);
    if (what == 1) return -1;
    if (what == 2) die();
  }
  return real(start, size, flags);
}
