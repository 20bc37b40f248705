/* Bundles in the user's cache, for installations that this user may not write to:
   src/pylink/startup/usercache.py writes them. A bundle is a program, so one that another user
   could have written is not used. Owner and mode of the directory and the file are checked on open
   descriptors, the bytes are verified, and the interpreter opens the file by its descriptor, so
   that it cannot be exchanged in between.
 */
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define DESCRIPTOR_PATHS "/proc/self/fd/"
#define LARGEST_BUNDLE   (1 << 24) /* bytes: the field for the size in its head has three */

/* The head of a bundle, which is a .pyc file; offsets in bytes. The interpreter ignores the
   bytes of the checksum. src/pylink/startup/bundle.py writes it. */
enum {
    HEAD_MAGIC = 0,    /* 4 bytes: the bytecode's version */
    HEAD_CHECKSUM = 4, /* 8 bytes: `checksum` of all bytes from HEAD_SIZE on */
    HEAD_SIZE = 12,    /* 3 bytes and a zero: size of the bundle, little endian */
    HEAD_END = 16      /* size of the head */
};

/* Return the size of a bundle, as its head says. */
static long size_in_head(const unsigned char* head) {
    return head[HEAD_SIZE] | head[HEAD_SIZE + 1] << 8 | head[HEAD_SIZE + 2] << 16;
}

/* Return the same number as `checksum` of src/pylink/startup/bundle.py. */
static uint64_t checksum(const unsigned char* data, size_t size) {
    uint64_t hash = 0;
    size_t offset, i;
    for (offset = 0; offset < size; offset += 8) {
        uint64_t word = 0;
        for (i = 0; i < 8 && offset + i < size; i++)
            word |= (uint64_t)data[offset + i] << 8 * i;
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash;
}

/* Set the path of pylink's directory in this user's cache. Returns 0 if there is no such path, or
   if it could be another user's: the program is set-user-ID or set-group-ID, or the home or cache
   directory belongs to another user. */
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

/* Return whether an open file is a complete bundle for this interpreter's bytecode that only this
   user can have written. */
static int is_own_bundle(int file) {
    static const unsigned char magic[4] = PYLINK_MAGIC;
    struct stat status;
    unsigned char* data;
    uint64_t stored_checksum = 0;
    int good, i;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        (status.st_mode & 077) || status.st_size < HEAD_END || status.st_size > LARGEST_BUNDLE)
        return 0;
    data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (data == MAP_FAILED)
        return 0;
    for (i = 0; i < 8; i++)
        stored_checksum |= (uint64_t)data[HEAD_CHECKSUM + i] << 8 * i;
    good = memcmp(data + HEAD_MAGIC, magic, sizeof magic) == 0 &&
           size_in_head(data) == status.st_size &&
           checksum(data + HEAD_SIZE, (size_t)status.st_size - HEAD_SIZE) == stored_checksum;
    munmap(data, (size_t)status.st_size);
    return good;
}

/* Open the bundle of the package in the user's cache, and set `path` to its descriptor's path in
   /proc, by which the interpreter opens it. Returns 0 without /proc, or without a complete bundle
   that only this user can have written. */
static int open_cached(const char* package, char* path, size_t room) {
    char name[128];
    struct stat status, reached;
    int directory, file, inherited;
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
    /* The copy has no O_CLOEXEC, and does not take the number of a standard stream that is closed.
       */
    inherited = is_own_bundle(file) ? fcntl(file, F_DUPFD, 3) : -1;
    if (inherited >= 0) {
        snprintf(path, room, DESCRIPTOR_PATHS "%d", inherited);
        if (fstat(inherited, &status) != 0 || stat(path, &reached) != 0 ||
            status.st_ino != reached.st_ino || status.st_dev != reached.st_dev) {
            close(inherited); /* /proc is missing */
            inherited = -1;
        }
    }
    close(file);
    return inherited >= 0;
}
