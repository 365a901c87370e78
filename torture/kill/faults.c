/* A file layer that fails, between a program and its C library: the n-th open for writing, write, fsync, rename, folder made or file
   removed under a folder ends in an error. Preloaded; a fork arms it, and reads back what was done. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_FILES = 65536, MOST_OPERATIONS = 65536 };
enum { OPEN = 'o', WRITE = 'w', FSYNC = 'f', RENAME = 'r', MKDIR = 'm', UNLINK = 'u', TRUNCATE = 't' };

static char folder[PATH_MAX];
static int fails, code;
static atomic_int done;
static char operations[MOST_OPERATIONS + 1];
static atomic_char ours[MOST_FILES];

/* Count from here on: what is done under `place`; operation `number` ends in `error`, 0 for none. */
void faults_arm(const char *place, int number, int error) {
  fails = number, code = error, done = 0;
  memset(operations, 0, sizeof operations);
  snprintf(folder, sizeof folder, "%s", place);
}

/* A letter for each operation so far, in order. */
const char *faults_done(void) { return operations; }

static int counts(int kind) {
  int number = atomic_fetch_add(&done, 1) + 1;
  if (number <= MOST_OPERATIONS) operations[number - 1] = (char)kind;
  if (number != fails) return 0;
  errno = code;
  return 1;
}

static int inside(int directory, const char *path) {
  char whole[2 * PATH_MAX + 32], base[PATH_MAX] = "";
  if (!folder[0] || !path) return 0;
  if (path[0] == '/') return !strncmp(path, folder, strlen(folder));
  if (directory == AT_FDCWD) {
    if (!getcwd(base, sizeof base)) return 0;
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t size = readlink(link, base, sizeof base - 1);
    if (size < 0) return 0;
    base[size] = 0;
  }
  snprintf(whole, sizeof whole, "%s/%s", base, path);
  return !strncmp(whole, folder, strlen(folder));
}

static int is_ours(int file) { return folder[0] && file >= 0 && file < MOST_FILES && ours[file]; }

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define OPENS(name, given, directory, ...)                                            \
  int name given {                                                                    \
    REAL(name);                                                                       \
    mode_t mode = 0;                                                                  \
    if (flags & (O_CREAT | O_TMPFILE)) {                                              \
      va_list more;                                                                   \
      va_start(more, flags), mode = va_arg(more, mode_t), va_end(more);               \
    }                                                                                 \
    int here = inside(directory, path);                                               \
    if (here && (flags & (O_WRONLY | O_RDWR)) && counts(OPEN)) return -1;             \
    int file = real(__VA_ARGS__, flags, mode);                                        \
    if (file >= 0 && file < MOST_FILES) ours[file] = (char)here;                      \
    return file;                                                                      \
  }
OPENS(open, (const char *path, int flags, ...), AT_FDCWD, path)
OPENS(open64, (const char *path, int flags, ...), AT_FDCWD, path)
OPENS(openat, (int at, const char *path, int flags, ...), at, at, path)
OPENS(openat64, (int at, const char *path, int flags, ...), at, at, path)

/* Half of what is written gets there. */
#define WRITES(name, given, ...)                                                      \
  ssize_t name given {                                                                \
    REAL(name);                                                                       \
    if (!is_ours(file) || !counts(WRITE)) return real(file, content, size __VA_ARGS__); \
    real(file, content, size / 2 __VA_ARGS__);                                        \
    errno = code;                                                                     \
    return -1;                                                                        \
  }
WRITES(write, (int file, const void *content, size_t size))
WRITES(pwrite, (int file, const void *content, size_t size, off_t place), , place)
WRITES(pwrite64, (int file, const void *content, size_t size, off64_t place), , place)

#define ON_FILES(name, kind, given, ...)                                              \
  int name given {                                                                    \
    REAL(name);                                                                       \
    return is_ours(file) && counts(kind) ? -1 : real(__VA_ARGS__);                    \
  }
ON_FILES(fsync, FSYNC, (int file), file)
ON_FILES(fdatasync, FSYNC, (int file), file)
ON_FILES(ftruncate, TRUNCATE, (int file, off_t size), file, size)
ON_FILES(ftruncate64, TRUNCATE, (int file, off64_t size), file, size)

ssize_t writev(int file, const struct iovec *parts, int number) {
  REAL(writev);
  return is_ours(file) && counts(WRITE) ? -1 : real(file, parts, number);
}

#define ON_PATHS(name, kind, given, directory, ...)                                   \
  int name given {                                                                    \
    REAL(name);                                                                       \
    return inside(directory, path) && counts(kind) ? -1 : real(__VA_ARGS__);          \
  }
ON_PATHS(rename, RENAME, (const char *path, const char *to), AT_FDCWD, path, to)
ON_PATHS(renameat, RENAME, (int at, const char *path, int other, const char *to), at, at, path, other, to)
ON_PATHS(renameat2, RENAME, (int at, const char *path, int other, const char *to, unsigned flags), at, at, path, other, to, flags)
ON_PATHS(mkdir, MKDIR, (const char *path, mode_t mode), AT_FDCWD, path, mode)
ON_PATHS(mkdirat, MKDIR, (int at, const char *path, mode_t mode), at, at, path, mode)
ON_PATHS(unlink, UNLINK, (const char *path), AT_FDCWD, path)
ON_PATHS(unlinkat, UNLINK, (int at, const char *path, int flags), at, at, path, flags)
ON_PATHS(rmdir, UNLINK, (const char *path), AT_FDCWD, path)
