# Reads a directory of a tree: lists its files with their stamps, and its subdirectories.

from libc.errno cimport ENOMEM, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport strcmp, strlen

from base.filestatus cimport S_ISDIR, S_ISREG, Stat, fstatat
from base.vector cimport Vec, vec_append, vec_extend, vec_push
from fleet.stamps cimport Stamp, stamp_of

cdef extern from "<dirent.h>" nogil:
    ctypedef struct DIR:
        pass
    ctypedef struct Dirent "struct dirent":
        uint8_t d_type
        char d_name[256]
    DIR* opendir(const char* name)
    int closedir(DIR* directory)
    int dirfd(DIR* directory)
    enum:
        DT_UNKNOWN
        DT_DIR

cdef extern from "<fcntl.h>" nogil:
    enum:
        AT_FDCWD
        AT_SYMLINK_NOFOLLOW

cdef extern from "fleet/directories.h":
    Dirent* next_entry "pylink_next_entry"(DIR* directory, int* error) nogil

# A file that was found in a directory.
ctypedef struct DirectoryFile:
    uint64_t path               # offset of its path below the root, in `text` of the directory
    uint32_t size               # bytes of that path
    Stamp stamp                 # its size, times and inode

# A directory of a tree, and its entries once it was read.
ctypedef struct Directory:
    uint32_t root               # number of the root that it is in
    uint64_t start              # offset in `path` of the part below the root
    char* path                  # with a NUL at its end
    uint64_t size               # bytes of `path`
    int error                   # errno of a failure to read it, or 0
    Vec files                   # DirectoryFile
    Vec subdirectories          # uint64_t, two for each: offset of its path in `text`, path size
    Vec text                    # uint8_t: paths of files below the root, of subdirectories whole

# Directories of one depth, which threads read together, and the limits for all their files.
ctypedef struct Level:
    Directory* directories
    const char* skipped         # path of a directory that is not read, or empty
    int64_t largest             # bytes: larger files are not listed
    int64_t youngest            # ns: the stamp of a file that changed later becomes unknown


cdef inline void read_directory(void* context, size_t item) noexcept nogil:
    """List the files and subdirectories of a directory; a failure sets the directory's `error`.

    It is number `item` of the directories of `context`, a Level.
    """
    cdef Level* level = <Level*>context
    cdef Directory* directory = &level.directories[item]
    cdef DIR* stream = opendir(directory.path)
    cdef Dirent* entry
    cdef Stat status
    cdef bint good
    if stream == NULL:
        directory.error = errno
        return
    while True:
        entry = next_entry(stream, &directory.error)
        if entry == NULL:
            break
        if strcmp(entry.d_name, b".") == 0 or strcmp(entry.d_name, b"..") == 0:
            continue
        if entry.d_type == DT_UNKNOWN and (
                fstatat(dirfd(stream), entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0
                and S_ISDIR(status.st_mode)):
            entry.d_type = DT_DIR
        good = True
        if entry.d_type == DT_DIR:
            good = add_subdirectory(level, directory, entry.d_name)
        elif fstatat(dirfd(stream), entry.d_name, &status, 0) == 0:
            good = add_file(level, directory, &status, entry.d_name, 0)
        # A file that was removed meanwhile, or a link to nothing, is ignored.
        if not good:
            directory.error = ENOMEM
            break
    closedir(stream)


cdef inline bint add_path(Directory* directory, const char* name, uint64_t start) noexcept nogil:
    """Append the path of an entry, without its first `start` bytes, to the text.

    `name` is the last part of the path. False without memory.
    """
    cdef bint needs_slash = directory.size == 0 or directory.path[directory.size - 1] != c"/"
    if start < directory.size:
        if not vec_append(&directory.text, directory.path + start, directory.size - start):
            return False
        if needs_slash and not vec_append(&directory.text, b"/", 1):
            return False
    return vec_append(&directory.text, name, strlen(name))


cdef inline bint add_subdirectory(Level* level, Directory* directory,
                                  const char* name) noexcept nogil:
    """Append a subdirectory, unless it is skipped; False without memory."""
    cdef uint64_t* place
    cdef uint64_t offset = directory.text.count
    if not add_path(directory, name, 0) or not vec_append(&directory.text, b"\0", 1):
        return False
    if strcmp(<const char*>directory.text.data + offset, level.skipped) == 0:
        return True
    place = <uint64_t*>vec_extend(&directory.subdirectories, 2)
    if place == NULL:
        return False
    place[0] = offset
    place[1] = directory.text.count - 1 - offset
    return True


cdef inline bint add_file(Level* level, Directory* directory, const Stat* status, const char* name,
                          uint64_t skip) noexcept nogil:
    """Append a regular file of 1 to `largest` bytes, ignore others; False without memory.

    After its first `skip` bytes, `name` is the file's path below the directory.
    """
    cdef DirectoryFile* file
    cdef uint64_t offset = directory.text.count
    if (not S_ISREG(status.st_mode) or status.st_size <= 0 or status.st_size > level.largest):
        return True
    file = <DirectoryFile*>vec_push(&directory.files)
    if file == NULL or not add_path(directory, name + skip, directory.start):
        return False
    file.path = offset
    file.size = <uint32_t>(directory.text.count - offset)
    file.stamp = stamp_of(status)
    if file.stamp.ctime > level.youngest:
        file.stamp.mtime = file.stamp.ctime = file.stamp.inode = 0
    return True
