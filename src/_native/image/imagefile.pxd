# An output that is made in its file: disk space for all of it, mapped on large pages.
#
# A large page can lie only where the address and the place in the file are both multiples of its
# size; with small ones a link that writes 86 MB has 25,000 faults instead of 2,000.
#
# A store to a mapped file cannot fail, it can only end the process: the file systems below are
# those that never need more than `fallocate` took. It is the system's own call, since the C
# library's writes to every page where a file system has no such thing.
cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <stddef.h>
    #include <stdint.h>
    #include <sys/mman.h>
    #ifdef __linux__
    #include <sys/syscall.h>
    #include <sys/vfs.h>
    #include <unistd.h>
    #define PYLINK_EXT4 0xEF53              /* and its predecessors */
    #define PYLINK_XFS 0x58465342
    static int pylink_reserve(int file, size_t size) {
        struct statfs about;
        int done;
        if (fstatfs(file, &about) != 0)
            return 0;
        if (about.f_type != PYLINK_EXT4 && about.f_type != PYLINK_XFS)
            return 0;
        do
            done = fallocate(file, 0, 0, (off_t)size);
        while (done != 0 && errno == EINTR);
        return done == 0;
    }
    static void* pylink_map_file(int file, size_t size) {
        const size_t large = (size_t)2 << 20;
        char *room, *data;
        if (size == 0 || size > (size_t)-1 / 2 || !pylink_reserve(file, size))
            return NULL;
        room = (char*)mmap(NULL, size + large, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == (char*)MAP_FAILED)
            return NULL;
        data = (char*)(((uintptr_t)room + large - 1) & ~(uintptr_t)(large - 1));
        if (mmap(data, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0)
                == MAP_FAILED) {
            munmap(room, size + large);
            return NULL;
        }
        if (data > room)
            munmap(room, (size_t)(data - room));
        size = (size + 4095) & ~(size_t)4095;
        munmap(data + size, (size_t)(room + large - data));
        madvise(data, size, MADV_HUGEPAGE);
        return data;
    }
    #else
    static void* pylink_map_file(int file, size_t size) {
        (void)file; (void)size;
        return NULL;
    }
    #endif
    """
    void* map_file "pylink_map_file"(int file, size_t size) noexcept nogil
    int munmap(void* start, size_t size) nogil
