# What is in a folder of a tree: its files with their stamps, and the folders in it.

from libc.errno cimport ENOMEM, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport strcmp, strlen

from base.vector cimport Vec, vec_append, vec_extend, vec_push
from fleet.stamps cimport S_ISDIR, S_ISREG, Stamp, Stat, fstatat, stamp_of

cdef extern from "<dirent.h>" nogil:
    ctypedef struct DIR:
        pass
    ctypedef struct DirectoryEntry "struct dirent":
        uint8_t d_type
        char d_name[256]
    DIR* opendir(const char* name)
    int closedir(DIR* folder)
    int dirfd(DIR* folder)
    enum:
        DT_UNKNOWN
        DT_DIR

cdef extern from "<fcntl.h>" nogil:
    enum:
        AT_FDCWD
        AT_SYMLINK_NOFOLLOW

cdef extern from "fleet/folders.h":
    DirectoryEntry* next_entry "pylink_next_entry"(DIR* folder, int* error) nogil

# A file of the tree; the path is in the text of its folder.
ctypedef struct FolderFile:
    uint64_t path
    uint32_t size
    Stamp stamp

ctypedef struct Folder:
    uint32_t root
    uint64_t start              # where in `path` what is below the root begins
    char* path
    uint64_t size               # bytes of `path`
    int error                   # errno
    Vec files
    Vec inner                   # uint64: where the paths of folders in it begin, in `text`
    Vec text

ctypedef struct Level:
    Folder* folders
    const char* skipped
    int64_t largest
    int64_t youngest


cdef inline void read_folder(void* context, size_t item) noexcept nogil:
    """Fill a folder with what is in it; `error` says why that does not work."""
    cdef Level* level = <Level*>context
    cdef Folder* folder = &level.folders[item]
    cdef DIR* stream = opendir(folder.path)
    cdef DirectoryEntry* entry
    cdef Stat status
    cdef bint good
    if stream == NULL:
        folder.error = errno
        return
    while True:
        entry = next_entry(stream, &folder.error)
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
            good = add_inner(level, folder, entry.d_name)
        elif fstatat(dirfd(stream), entry.d_name, &status, 0) == 0:
            good = add_file(level, folder, &status, entry.d_name, 0)
        # Else it is gone already, or a link that leads nowhere.
        if not good:
            folder.error = ENOMEM
            break
    closedir(stream)


cdef inline bint add_path(Folder* folder, const char* name, uint64_t start) noexcept nogil:
    """Put the path of an entry from `start` on at the end of the text; False without memory."""
    cdef bint joins = folder.size == 0 or folder.path[folder.size - 1] != c"/"
    if start < folder.size:
        if not vec_append(&folder.text, folder.path + start, folder.size - start):
            return False
        if joins and not vec_append(&folder.text, b"/", 1):
            return False
    return vec_append(&folder.text, name, strlen(name))


cdef inline bint add_inner(Level* level, Folder* folder, const char* name) noexcept nogil:
    """Note a folder, unless it is skipped; False without memory."""
    cdef uint64_t* place
    cdef uint64_t offset = folder.text.count
    if not add_path(folder, name, 0) or not vec_append(&folder.text, b"\0", 1):
        return False
    if strcmp(<const char*>folder.text.data + offset, level.skipped) == 0:
        return True
    place = <uint64_t*>vec_extend(&folder.inner, 2)
    if place == NULL:
        return False
    place[0] = offset
    place[1] = folder.text.count - 1 - offset
    return True


cdef inline bint add_file(Level* level, Folder* folder, const Stat* status, const char* name,
                          uint64_t skip) noexcept nogil:
    """Note a file that may be an input; False without memory.

    `skip_word` bytes of the name are not after the folder's, but in it.
    """
    cdef FolderFile* file
    cdef uint64_t offset = folder.text.count
    if (not S_ISREG(status.st_mode) or status.st_size <= 0 or status.st_size > level.largest):
        return True
    file = <FolderFile*>vec_push(&folder.files)
    if file == NULL or not add_path(folder, name + skip, folder.start):
        return False
    file.path = offset
    file.size = <uint32_t>(folder.text.count - offset)
    file.stamp = stamp_of(status)
    if file.stamp.ctime > level.youngest:
        file.stamp.mtime = file.stamp.ctime = file.stamp.inode = 0
    return True
