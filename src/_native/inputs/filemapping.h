/* Mapped input files, and the leases that keep them as they are. */
#ifndef PYLINK_INPUTS_FILEMAPPING_H
#define PYLINK_INPUTS_FILEMAPPING_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif

/* A mapped file: where it is in the arena, what identifies it, and what shows that it changed. */
typedef struct {
    uint64_t offset; /* in the arena, in bytes */
    uint64_t size;   /* bytes; 0: it is not mapped */
    uint64_t device;
    uint64_t inode;
    int64_t modified; /* st_mtim in ns */
} pylink_mapped;

#if defined(__linux__) && defined(F_SETLEASE)
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; older ones refuse the number */
#endif
/* Return the time in ns at which a file's contents last changed (st_mtim). */
static int64_t pylink_time_of(const struct stat* status) {
    return (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

/* Return whether an open file is on a file system where a mapping surely keeps the file's lease. On
   one that lies on others, such as overlayfs, the kernel maps a file of the lower file system, and
   the lease is not on that file. */
static int pylink_can_lease(int file) {
    struct statfs system;
    if (fstatfs(file, &system) != 0)
        return 0;
    switch ((uint32_t)system.f_type) {
    case 0xef53u:     /* ext2 to ext4 */
    case 0x58465342u: /* XFS */
    case 0x9123683eu: /* Btrfs */
    case 0xf2f52010u: /* F2FS */
    case 0x01021994u: /* tmpfs */
        return 1;
    default:
        return 0;
    }
}

/* Return whether `seen_keys` (SEEN_KEYS of `inputs/filemapping.pxd`) already has the key of a file;
   if not, add it. So a file is mapped once, unless keys collide, even if several inputs are links
   to it. Each further lease of a file would take longer, since the kernel walks all leases of the
   file to add one. The multiplier spreads the inode to the highest bits, which are the index. */
static int pylink_seen_before(uint64_t* seen_keys, const struct stat* status) {
    uint64_t key = ((uint64_t)status->st_ino + 1) * 0x9e3779b97f4a7c15u ^ status->st_dev;
    return __atomic_exchange_n(&seen_keys[key >> 52], key, __ATOMIC_RELAXED) == key;
}

/* Most files that a process has mapped at a time, in all its links together. A file and the gap
   after it are two mappings, so all files take half of the 65,530 that Linux allows a process. */
#define PYLINK_MOST_MAPPED (1 << 14)
static int64_t pylink_mapped_now = 0;
/* Add `more` to the number of mapped files, and return the sum. */
static int64_t pylink_count_mapped(int64_t more) {
    return __atomic_add_fetch(&pylink_mapped_now, more, __ATOMIC_RELAXED);
}

/* Map all of a file of `size` bytes to `place`, and fill `row`, except for `offset`. Returns 0 if
   that cannot be done or `seen_keys` has the file already; then nothing is mapped, and `row` has
   not changed. */
static int pylink_map_file(int file, void* place, uint64_t size, uint64_t* seen_keys,
                           pylink_mapped* row) {
    struct stat status;
    /* The kernel signals that another process waits for the end of the lease. Here that must not
       disturb: SIGURG is ignored by default, and no process is set to receive it (F_SETOWN). */
    if (pylink_count_mapped(1) > PYLINK_MOST_MAPPED || !pylink_can_lease(file) ||
        fcntl(file, F_SETSIG, SIGURG) != 0 || fcntl(file, F_SETLEASE, F_RDLCK) != 0) {
        pylink_count_mapped(-1);
        return 0;
    }
    fcntl(file, F_SETOWN, 0);
    if (fstat(file, &status) != 0 || (uint64_t)status.st_size != size ||
        pylink_seen_before(seen_keys, &status) ||
        mmap(place, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) != place) {
        fcntl(file, F_SETLEASE, F_UNLCK);
        pylink_count_mapped(-1);
        return 0;
    }
    row->size = size;
    row->device = status.st_dev;
    row->inode = status.st_ino;
    row->modified = pylink_time_of(&status);
    return 1;
}

/* No thread forks while files are being mapped: the child would inherit the open files, and the
   mappings that `pylink_share_pages` has not yet excluded, with their leases. */
static pthread_mutex_t pylink_no_forks = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t pylink_fork_once = PTHREAD_ONCE_INIT;
/* Wait for forks and mappings of other threads, and hold later ones until pylink_allow_forks. */
static void pylink_hold_forks(void) {
    pthread_mutex_lock(&pylink_no_forks);
}

/* Let the forks and mappings that wait go on. */
static void pylink_allow_forks(void) {
    pthread_mutex_unlock(&pylink_no_forks);
}

/* Begin a child process, which inherits no mapped files. */
static void pylink_start_child(void) {
    pylink_mapped_now = 0;
    pylink_allow_forks();
}

/* Let each later fork wait while files are being mapped. */
static void pylink_register_fork_handlers(void) {
    pthread_atfork(pylink_hold_forks, pylink_allow_forks, pylink_start_child);
}

/* Hold forks while files are being mapped, until pylink_allow_forks. */
static void pylink_begin_mapping(void) {
    pthread_once(&pylink_fork_once, pylink_register_fork_handlers);
    pylink_hold_forks();
}

/* Set whether child processes inherit these pages; a child that does keeps their leases. */
static void pylink_share_pages(void* place, uint64_t size, int shared) {
    madvise(place, size, shared ? MADV_DOFORK : MADV_DONTFORK);
}

/* Let the kernel provide all pages of mapped files at once, instead of one fault after the other.
   Returns 0 if it cannot. The first use of a page without bytes, such as one of a bad block or
   after the end of a file, would raise SIGBUS, which ends the process. */
static int pylink_fetch_pages(void* place, uint64_t size) {
    return madvise(place, size, MADV_POPULATE_READ) == 0;
}

/* Return whether the mapped file was written to. Another file that is at `path` now does not
   count. */
static int pylink_was_written(const char* path, const pylink_mapped* row) {
    struct stat status;
    return stat(path, &status) == 0 && status.st_dev == row->device &&
           status.st_ino == row->inode &&
           ((uint64_t)status.st_size != row->size || pylink_time_of(&status) != row->modified);
}

/* Give up the pages of mapped files, which stay mapped. Several threads can do this at a time,
   unlike ending mappings. */
static void pylink_drop_pages(void* place, uint64_t size) {
    madvise(place, size, MADV_DONTNEED);
}

/* Replace mapped files by pages of zeros. Returns 0 if that cannot be done. */
static int pylink_unmap_files(void* place, uint64_t size) {
    return mmap(place, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == place;
}

/* Replace mapped files, or a part of them, by a copy. Returns 0 if that cannot be done. */
static int pylink_copy_mapped(void* place, uint64_t size) {
    void* copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return 0;
    memcpy(copy, place, size);
    if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place)
        return 1;
    munmap(copy, size);
    return 0;
}
#else /* systems without leases, where no file is mapped */
#define PYLINK_MOST_MAPPED 0
static int64_t pylink_count_mapped(int64_t more) {
    (void)more;
    return 0;
}

/* Map no file, since this system has no leases: return 0. */
static int pylink_map_file(int file, void* place, uint64_t size, uint64_t* seen_keys,
                           pylink_mapped* row) {
    (void)file;
    (void)place;
    (void)size;
    (void)seen_keys;
    (void)row;
    return 0;
}

/* Do nothing, since no file is mapped without leases. */
static void pylink_begin_mapping(void) {
}

/* Do nothing, since no file is mapped without leases. */
static void pylink_allow_forks(void) {
}

/* Do nothing, since no file is mapped without leases. */
static void pylink_share_pages(void* place, uint64_t size, int shared) {
    (void)place;
    (void)size;
    (void)shared;
}

/* Return success: no file is mapped without leases. */
static int pylink_fetch_pages(void* place, uint64_t size) {
    (void)place;
    (void)size;
    return 1;
}

/* Do nothing, since no file is mapped without leases. */
static void pylink_drop_pages(void* place, uint64_t size) {
    (void)place;
    (void)size;
}

/* Return 0: no file is mapped without leases. */
static int pylink_was_written(const char* path, const pylink_mapped* row) {
    (void)path;
    (void)row;
    return 0;
}

/* Return success: no file is mapped without leases. */
static int pylink_unmap_files(void* place, uint64_t size) {
    (void)place;
    (void)size;
    return 1;
}

/* Return success: no file is mapped without leases. */
static int pylink_copy_mapped(void* place, uint64_t size) {
    (void)place;
    (void)size;
    return 1;
}
#endif

#endif
