/* Preloaded into a process: notes every change of files below $RECORDER_ROOT, and every sync, in $RECORDER_LOG.

A record is {char op; int fd; long a, b; unsigned n, m} and two byte strings of lengths n and m:
  o  opened: fd, a = whether it was empty before, b = its birth in ns; its path
  w  written: fd, a = offset; the bytes
  t  cut or extended: fd, a = length
  s  synced: fd
  r  renamed: path, new path     l  linked: path, new path
  u  unlinked: path              m  folder made: path
What is mapped into memory is not seen; SQLite maps only the index of its log, which it makes anew after a crash. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct record { char op; int fd; long a, b; unsigned n, m; };
static int out = -1;
static const char *root;
static char watched[65536];

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
    root = getenv("RECORDER_ROOT");
    const char *log = getenv("RECORDER_LOG");
    if (root && log) {
        int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
        out = real(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
}

static void note(char op, int fd, long a, long b, const void *x, size_t n, const void *y, size_t m) {
    struct record r;
    memset(&r, 0, sizeof r);
    r.op = op, r.fd = fd, r.a = a, r.b = b, r.n = n, r.m = m;
    struct iovec parts[3] = {{&r, sizeof r}, {(void *)x, n}, {(void *)y, m}};
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (real(out, parts, 3) != (ssize_t)(sizeof r + n + m)) abort();
}

static int absolute(int folder, const char *path, char *whole) {
    char name[64], base[PATH_MAX] = "";
    if (out < 0 || !path) return 0;
    if (path[0] != '/') {
        ssize_t n = 0;
        if (folder == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            snprintf(name, sizeof name, "/proc/self/fd/%d", folder);
            if ((n = readlink(name, base, sizeof base - 1)) < 0) return 0;
            base[n] = 0;
        }
        snprintf(whole, 2 * PATH_MAX, "%s/%s", base, path);
    } else
        snprintf(whole, 2 * PATH_MAX, "%s", path);
    return strncmp(whole, root, strlen(root)) == 0;
}

static int seen(int fd) { return out >= 0 && fd >= 0 && fd < (int)sizeof watched && watched[fd]; }

static int opened(int fd, int folder, const char *path, int flags) {
    char whole[2 * PATH_MAX];
    if (fd >= 0 && fd < (int)sizeof watched) watched[fd] = 0;
    if (fd >= 0 && fd < (int)sizeof watched && absolute(folder, path, whole)) {
        struct statx s;
        int known = statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_SIZE, &s) == 0;
        watched[fd] = 1;
        note('o', fd, (flags & O_TRUNC) || s.stx_size == 0, known ? s.stx_btime.tv_sec * 1000000000L + s.stx_btime.tv_nsec : 0,
             whole, strlen(whole), 0, 0);
    }
    return fd;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        REAL(int, #name, const char *, int, ...); \
        return opened(real(path, flags, mode), AT_FDCWD, path, flags); }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        REAL(int, #name, int, const char *, int, ...); \
        return opened(real(folder, path, flags, mode), folder, path, flags); }
OPENAT(openat)
OPENAT(openat64)

#define PWRITE(name) \
    ssize_t name(int fd, const void *x, size_t n, off_t at) { \
        REAL(ssize_t, #name, int, const void *, size_t, off_t); \
        ssize_t done = real(fd, x, n, at); \
        if (done > 0 && seen(fd)) note('w', fd, at, 0, x, done, 0, 0); \
        return done; }
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t write(int fd, const void *x, size_t n) {
    REAL(ssize_t, "write", int, const void *, size_t);
    ssize_t done = real(fd, x, n);
    if (done > 0 && seen(fd)) note('w', fd, lseek(fd, 0, SEEK_CUR) - done, 0, x, done, 0, 0);
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
    if (seen(fd)) abort(); /* nothing here writes so; it would be missed */
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    return real(fd, parts, n);
}

#define TRUNCATE(name) \
    int name(int fd, off_t length) { \
        REAL(int, #name, int, off_t); \
        int result = real(fd, length); \
        if (!result && seen(fd)) note('t', fd, length, 0, 0, 0, 0, 0); \
        return result; }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define SYNC(name) \
    int name(int fd) { \
        REAL(int, #name, int); \
        int result = real(fd); \
        if (!result && seen(fd)) note('s', fd, 0, 0, 0, 0, 0, 0); \
        return result; }
SYNC(fsync)
SYNC(fdatasync)

static int two(int result, char op, int f, const char *x, int g, const char *y) {
    char a[2 * PATH_MAX], b[2 * PATH_MAX];
    if (!result && absolute(f, x, a) && absolute(g, y, b)) note(op, -1, 0, 0, a, strlen(a), b, strlen(b));
    return result;
}

static int one(int result, char op, int f, const char *x) {
    char a[2 * PATH_MAX];
    if (!result && absolute(f, x, a)) note(op, -1, 0, 0, a, strlen(a), 0, 0);
    return result;
}

int rename(const char *x, const char *y) {
    REAL(int, "rename", const char *, const char *);
    return two(real(x, y), 'r', AT_FDCWD, x, AT_FDCWD, y);
}

int renameat(int f, const char *x, int g, const char *y) {
    REAL(int, "renameat", int, const char *, int, const char *);
    return two(real(f, x, g, y), 'r', f, x, g, y);
}

int link(const char *x, const char *y) {
    REAL(int, "link", const char *, const char *);
    return two(real(x, y), 'l', AT_FDCWD, x, AT_FDCWD, y);
}

int linkat(int f, const char *x, int g, const char *y, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    return two(real(f, x, g, y, flags), 'l', f, x, g, y);
}

int unlink(const char *x) {
    REAL(int, "unlink", const char *);
    return one(real(x), 'u', AT_FDCWD, x);
}

int unlinkat(int f, const char *x, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    return one(real(f, x, flags), 'u', f, x);
}

int mkdir(const char *x, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return one(real(x, mode), 'm', AT_FDCWD, x);
}

int mkdirat(int f, const char *x, mode_t mode) {
    REAL(int, "mkdirat", int, const char *, mode_t);
    return one(real(f, x, mode), 'm', f, x);
}
