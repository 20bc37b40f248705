/* Bundles in the user's cache, for installations that this user may not write:
 * src/pylink/startup/usercache.py writes them. A bundle is a program, so one that anybody else could
 * have written is not used: directory and file are checked on their open descriptors, the bytes are
 * verified, and it is that descriptor which the interpreter opens.
 */
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define OPENED         "/proc/self/fd/"
#define LARGEST_BUNDLE (1 << 24)

/* Computes what `checksum` of src/pylink/startup/bundle.py does. */
static uint64_t checksum(const unsigned char* data, size_t size) {
    uint64_t total = 0;
    size_t at, i;
    for (at = 0; at < size; at += 8) {
        uint64_t word = 0;
        for (i = 0; i < 8 && at + i < size; i++)
            word |= (uint64_t)data[at + i] << 8 * i;
        total = (total ^ word) * 0x9E3779B97F4A7C15u;
        total ^= total >> 32;
    }
    return total;
}

/* The path of this user's directory; 0 where a cache could be another user's. */
static int find_cache(char* path, size_t room) {
    const char *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME");
    uid_t user = geteuid();
    struct stat status;
    int has_home = home != NULL && *home, is_own = cache != NULL && *cache == '/';
    const char* base = is_own ? cache : home;
    if (getuid() != user || getgid() != getegid() || getauxval(AT_SECURE))
        return 0;
    if (has_home && (stat(home, &status) != 0 || status.st_uid != user))
        return 0;
    if (base == NULL || *base != '/' || stat(base, &status) != 0 || status.st_uid != user)
        return 0;
    return snprintf(path, room, is_own ? "%s/pylink" : "%s/.cache/pylink", base) < (int)room;
}

/* Whether an open file is a whole bundle, in the bytecode of this interpreter, of this user's. */
static int is_good(int file) {
    static const unsigned char magic[4] = PYLINK_MAGIC;
    struct stat status;
    unsigned char* data;
    uint64_t stated = 0;
    int good, i;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        (status.st_mode & 077) || status.st_size < 16 || status.st_size > LARGEST_BUNDLE)
        return 0;
    data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (data == MAP_FAILED)
        return 0;
    for (i = 0; i < 8; i++)
        stated |= (uint64_t)data[4 + i] << 8 * i;
    good = memcmp(data, magic, sizeof magic) == 0 &&
           (data[12] | data[13] << 8 | data[14] << 16) == status.st_size &&
           checksum(data + 12, (size_t)status.st_size - 12) == stated;
    munmap(data, (size_t)status.st_size);
    return good;
}

/* Open the bundle of the package in the user's cache, and write the path under which the
   interpreter finds that descriptor; 0 without a bundle that is safe and whole. */
static int open_cached(const char* package, char* path, size_t room) {
    char name[128];
    struct stat status, reached;
    int directory, file, kept;
    if (!find_cache(path, room) ||
        (directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return 0;
    file = -1;
    if (fstat(directory, &status) == 0 && status.st_uid == geteuid() &&
        (status.st_mode & 07777) == 0700 && stat(package, &status) == 0) {
        snprintf(name, sizeof name, "%llx-%llx." PYLINK_BUNDLE, (unsigned long long)status.st_dev,
                 (unsigned long long)status.st_ino);
        file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    close(directory);
    if (file < 0)
        return 0;
    /* Without the flag that closes it, and not in the place of a standard stream that is closed. */
    kept = is_good(file) ? fcntl(file, F_DUPFD, 3) : -1;
    if (kept >= 0) {
        snprintf(path, room, OPENED "%d", kept);
        if (fstat(kept, &status) != 0 || stat(path, &reached) != 0 ||
            status.st_ino != reached.st_ino || status.st_dev != reached.st_dev) {
            close(kept); /* no /proc */
            kept = -1;
        }
    }
    close(file);
    return kept >= 0;
}
