"""Compares the files of a build tree with an index: which are new, changed or gone.

A tree has hundreds of thousands of files, and few have changed. A run spends nearly all its time on
`stat` and on finding the row of each file in the index. Directories are read depth by depth;
several threads share the directories of one depth.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport ENOENT, ENOMEM, ENOTDIR
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from base.filestatus cimport S_ISDIR, S_ISLNK, Stat, fstatat
from base.memory cimport check_memory
from base.nameindex cimport (
    NameIndex, NameSlot, TextPool, index_find, index_free, index_init, pool_allocate, scratch_index,
    scratch_texts,
)
from base.scratch cimport (
    Release, Scratch, scratch_free, scratch_init, scratch_owns, scratch_vector, scratch_zeros,
)
from base.threads cimport run_each
from base.vector cimport Vec, vec_free, vec_init, vec_push
from fleet.directories cimport (
    AT_FDCWD, AT_SYMLINK_NOFOLLOW, Directory, DirectoryFile, Level, add_file, read_directory,
)
from fleet.indexedfiles cimport M_REPLACED, M_SEEN, Base, Indexed, find_row, hash_path, is_inside
from fleet.listedfiles cimport (
    ListedFile, file_columns, list_file, list_indexed, list_row, sort_columns,
)
from fleet.stamps cimport Stamp, is_same, is_unknown

cdef enum:
    # Work of reading one directory, for `run_each`: the bytes that can be copied in the same time.
    DIRECTORY_COST = 1 << 20

cdef void free_indices(Vec* indices) noexcept nogil:
    """Free the memory that the index of each root owns."""
    cdef size_t i
    for i in range(indices.count):
        index_free(<NameIndex*>indices.data + i)


cdef void free_directories(Vec* directories) noexcept nogil:
    """Free the memory that each directory owns."""
    cdef Directory* directory
    cdef size_t i
    for i in range(directories.count):
        directory = <Directory*>directories.data + i
        vec_free(&directory.files)
        vec_free(&directory.subdirectories)
        vec_free(&directory.text)


cdef class Census:
    """The files of an index, and those that a run finds in its trees."""
    cdef list roots             # paths of the trees: bytes, in order of mention
    cdef list buffers           # bytes objects that rows point into, which must live as long
    cdef Base base              # files of the index as the first block of its state file has them
    cdef Vec indexed_files      # Indexed: files that were added or changed since the base
    cdef Vec indices            # NameIndex by root: the row of a path in indexed_files
    cdef Vec directories        # Directory: those that this run reads
    cdef TextPool paths         # texts of `path` of each Directory
    cdef Scratch scratch        # owns the memory of all fields above except the lists
    cdef set walked             # numbers of roots that `walk` has read

    def __cinit__(self):
        self.roots, self.buffers, self.walked = [], [], set()
        memset(&self.base, 0, sizeof(Base))
        scratch_init(&self.scratch)
        scratch_vector(&self.scratch, &self.indexed_files, sizeof(Indexed))
        scratch_vector(&self.scratch, &self.indices, sizeof(NameIndex))
        scratch_owns(&self.scratch, <Release>free_indices, &self.indices)
        scratch_vector(&self.scratch, &self.directories, sizeof(Directory))
        scratch_owns(&self.scratch, <Release>free_directories, &self.directories)
        scratch_texts(&self.scratch, &self.paths)
        check_memory(not self.scratch.failed)

    def __dealloc__(self):
        scratch_free(&self.scratch)

    cdef uint32_t number_root(self, bytes root) except? 0xffffffff:
        """Return the number of a root; add the root if it is new."""
        cdef NameIndex* index
        if root in self.roots:
            return <uint32_t>self.roots.index(root)
        index = <NameIndex*>vec_push(&self.indices)
        check_memory(index != NULL)
        index.slots = NULL
        check_memory(index_init(index, 64))
        self.roots.append(root)
        return <uint32_t>(len(self.roots) - 1)

    def set_base(self, list names not None, bytes data not None, places not None):
        """Set the first rows, which stay in `data`; rows of `add_rows` replace them.

        `names` are the paths of the roots, `places` the offsets of the columns in `data`, and the
        end of the last.
        """
        cdef Py_ssize_t ends, stamps, roots, slots, text, stop
        ends, stamps, roots, slots, text, stop = places
        cdef const char* start = PyBytes_AS_STRING(data)
        cdef Py_ssize_t file_count = (roots - stamps) // <Py_ssize_t>sizeof(Stamp), i
        cdef Py_ssize_t slot_count = (text - slots) // 4
        cdef Base* base = &self.base
        if self.roots or len(set(names)) != len(names):
            raise ValueError("the index has rows already")
        if (not 0 <= ends <= stamps <= roots <= slots <= text <= stop <= PyBytes_GET_SIZE(data)
                or stamps - ends != 8 * (file_count + 1)
                or roots - stamps != file_count * <Py_ssize_t>sizeof(Stamp)
                or slots - roots != 4 * file_count or text - slots != 4 * slot_count
                or slot_count <= file_count
                or slot_count & (slot_count - 1) or (ends | stamps) % 8 or (roots | slots) % 4):
            raise ValueError("columns differ in length")
        base.end, base.stamp = <const int64_t*>(start + ends), <const Stamp*>(start + stamps)
        base.root, base.slots = <const int32_t*>(start + roots), <const int32_t*>(start + slots)
        base.text = <const uint8_t*>(start + text)
        for i in range(file_count):
            if not 0 <= base.root[i] < len(names):
                raise IndexError(f"no root {base.root[i]}")
            if not 0 <= base.end[i] <= base.end[i + 1] <= stop - text:
                raise IndexError(f"path {i} is outside the text")
        base.marks = <uint8_t*>scratch_zeros(&self.scratch, file_count + 1, 1)
        check_memory(base.marks != NULL)
        self.buffers.append(data)
        for name in names:
            self.number_root(name)
        base.mask, base.count = slot_count - 1, file_count

    def add_rows(self, list names not None, bytes roots not None, bytes ends not None,
                 bytes text not None, bytes stamps not None, bytes gone not None):
        """Add columns of files; a later row of a file replaces earlier ones.

        `names` are the paths of roots. By file: `roots` is the number of its root among these,
        `stamps` its Stamp, and `gone` whether it was removed. The path of file i is `text` from
        `ends[i]` to `ends[i + 1]`.
        """
        cdef const int32_t* root = <const int32_t*>PyBytes_AS_STRING(roots)
        cdef const int64_t* end = <const int64_t*>PyBytes_AS_STRING(ends)
        cdef const Stamp* stamp = <const Stamp*>PyBytes_AS_STRING(stamps)
        cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(text)
        cdef const char* is_gone = PyBytes_AS_STRING(gone)
        cdef Py_ssize_t file_count = PyBytes_GET_SIZE(gone), i
        cdef NameIndex* index
        cdef NameSlot* slot
        cdef Indexed* row
        cdef list numbers = [self.number_root(name) for name in names]
        if (PyBytes_GET_SIZE(roots) != 4 * file_count
                or PyBytes_GET_SIZE(ends) != 8 * (file_count + 1)
                or PyBytes_GET_SIZE(stamps) != file_count * <Py_ssize_t>sizeof(Stamp)):
            raise ValueError("columns differ in length")
        self.buffers.append(text)
        for i in range(file_count):
            if root[i] < 0 or root[i] >= len(numbers):
                raise IndexError(f"no root {root[i]}")
            if not 0 <= end[i] <= end[i + 1] <= PyBytes_GET_SIZE(text):
                raise IndexError(f"path {i} is outside the text")
            index = <NameIndex*>self.indices.data + <uint32_t>numbers[root[i]]
            slot = index_find(index, base + end[i], <uint32_t>(end[i + 1] - end[i]))
            check_memory(slot != NULL)
            if slot.value < 0:
                self.add_indexed(index, slot, <uint32_t>numbers[root[i]])
                self.replace_base_row(slot, <uint32_t>numbers[root[i]])
            row = <Indexed*>self.indexed_files.data + slot.value
            row.stamp = stamp[i]
            row.in_index = not is_gone[i]

    cdef Indexed* add_indexed(self, NameIndex* index, NameSlot* slot, uint32_t root) except NULL:
        """Add an Indexed, without a stamp, for the new `slot` of `index`, the index of `root`."""
        cdef Indexed* row = <Indexed*>vec_push(&self.indexed_files)
        check_memory(row != NULL)
        slot.value = <int32_t>(self.indexed_files.count - 1)
        index.count += 1
        row.path, row.size, row.root = slot.text, slot.size, root
        row.in_index = row.seen = False
        return row

    cdef bint replace_base_row(self, const NameSlot* slot, uint32_t root) noexcept:
        """Mark the base row of a file as replaced by a new row; False if it has no base row."""
        cdef int64_t base_row = find_row(&self.base, root, slot.text, slot.size)
        if base_row < 0:
            return False
        self.base.marks[base_row] |= M_REPLACED
        return True

    def export_rows(self):
        """Return all files of the index that were not removed, in any order."""
        cdef size_t i
        cdef Indexed* row
        cdef Vec listed
        cdef Scratch scratch
        scratch_init(&scratch)
        try:
            scratch_vector(&scratch, &listed, sizeof(ListedFile))
            for i in range(self.base.count):
                if not self.base.marks[i] & M_REPLACED:
                    list_row(&listed, &self.base, i)
            for i in range(self.indexed_files.count):
                row = <Indexed*>self.indexed_files.data + i
                if row.in_index:
                    list_indexed(&listed, row)
            return file_columns(&listed, self.roots)
        finally:
            scratch_free(&scratch)

    def walk(self, bytes root not None, bytes skipped not None, int64_t largest, int64_t youngest):
        """Find all files below a root, except in the directory `skipped`.

        Empty files and those of more than `largest` bytes are ignored. Files that changed after
        `youngest` (ns) get an unknown stamp. A root is read only once. Returns path and errno of
        each directory that cannot be read, except for subdirectories that were removed meanwhile.
        """
        cdef size_t first = self.directories.count
        cdef uint32_t root_number = self.number_root(root)
        if root_number not in self.walked:
            self.walked.add(root_number)
            self.add_directory(
                root_number, PyBytes_AS_STRING(root), len(root), len(root.rstrip(b"/")) + 1)
        return self.read_directories(first, skipped, largest, youngest)

    def find_at(self, bytes root not None, list paths not None, bytes skipped not None,
                int64_t largest, int64_t youngest):
        """Find files at `paths` below a root, and all files in paths that are directories.

        The other arguments are those of `walk`. Returns the directories that cannot be read, as
        `walk` does, and those `paths` at which there is a directory, nothing, or a file that `walk`
        ignores. Paths in `skipped` are in neither.
        """
        cdef Level level
        cdef uint32_t root_number = self.number_root(root)
        cdef bytes base = root.rstrip(b"/") + b"/", path, full_path
        cdef size_t collector = self.directories.count, files_before
        cdef Directory* directory
        cdef Stat status
        cdef bint exists
        cdef list unmatched = []
        level.largest, level.youngest = largest, youngest
        # This Directory collects all files at `paths`; it is not read.
        self.add_directory(root_number, PyBytes_AS_STRING(base), len(base), len(base))
        for path in paths:
            full_path = base + path
            if skipped and (full_path + b"/").startswith(skipped + b"/"):
                continue
            exists = fstatat(
                AT_FDCWD, PyBytes_AS_STRING(full_path), &status, AT_SYMLINK_NOFOLLOW) == 0
            if exists and S_ISDIR(status.st_mode):
                unmatched.append(path)
                self.add_directory(
                    root_number, PyBytes_AS_STRING(full_path), len(full_path), len(base))
                continue
            directory = <Directory*>self.directories.data + collector
            files_before = directory.files.count
            if exists and S_ISLNK(status.st_mode):
                exists = fstatat(AT_FDCWD, PyBytes_AS_STRING(full_path), &status, 0) == 0
            if exists:
                check_memory(add_file(&level, directory, &status, PyBytes_AS_STRING(full_path),
                                      len(base)))
            if directory.files.count == files_before:
                unmatched.append(path)
        return self.read_directories(collector + 1, skipped, largest, youngest), unmatched

    cdef list read_directories(self, size_t first, bytes skipped, int64_t largest,
                               int64_t youngest):
        """Read the directories from number `first` of `directories` on, and all below them.

        The other arguments are those of `walk`, and so is the result.
        """
        cdef Level level
        cdef size_t first_inner = self.directories.count, end, i, k
        cdef Directory* directory
        cdef const uint64_t* subdirectory
        cdef list unreadable = []
        level.skipped = PyBytes_AS_STRING(skipped)
        level.largest, level.youngest = largest, youngest
        while first < self.directories.count:
            end = self.directories.count
            level.directories = <Directory*>self.directories.data + first
            with nogil:
                run_each(read_directory, &level, end - first, (end - first) * DIRECTORY_COST)
            for i in range(first, end):
                directory = <Directory*>self.directories.data + i
                check_memory(directory.error != ENOMEM)
                # A subdirectory that was removed meanwhile counts as empty.
                if directory.error and (i < first_inner
                                        or directory.error not in (ENOENT, ENOTDIR)):
                    unreadable.append((directory.path[:directory.size], directory.error))
                if directory.error:
                    directory.files.count = directory.subdirectories.count = 0
                k = 0
                while k < directory.subdirectories.count:
                    subdirectory = <const uint64_t*>directory.subdirectories.data + k
                    self.add_directory(
                        directory.root, <const char*>directory.text.data + subdirectory[0],
                        subdirectory[1], directory.start)
                    # The vector may have moved.
                    directory = <Directory*>self.directories.data + i
                    k += 2
            first = end
        return unreadable

    cdef int add_directory(self, uint32_t root, const char* path, uint64_t size,
                           uint64_t start) except -1:
        """Append a directory for `read_directories`.

        Byte `start` of `path` is where its path below the root begins.
        """
        cdef Directory* directory = <Directory*>vec_push(&self.directories)
        check_memory(directory != NULL)
        memset(directory, 0, sizeof(Directory))
        vec_init(&directory.files, sizeof(DirectoryFile))
        vec_init(&directory.subdirectories, sizeof(uint64_t))
        vec_init(&directory.text, 1)
        directory.root, directory.size, directory.start = root, size, start
        directory.path = <char*>pool_allocate(&self.paths, size + 1)
        check_memory(directory.path != NULL)
        memcpy(directory.path, path, size)
        directory.path[size] = 0
        return 0

    def compare(self):
        """Return the files that were found and are new or changed, once each."""
        cdef size_t i, k
        cdef Directory* directory
        cdef DirectoryFile* file
        cdef Vec listed
        cdef Scratch scratch
        scratch_init(&scratch)
        try:
            scratch_vector(&scratch, &listed, sizeof(ListedFile))
            for i in range(self.directories.count):
                directory = <Directory*>self.directories.data + i
                for k in range(directory.files.count):
                    file = <DirectoryFile*>directory.files.data + k
                    self.compare_file(
                        &listed, directory.root, directory.text.data + file.path, file)
            return sort_columns(&listed, self.roots)
        finally:
            scratch_free(&scratch)

    cdef int compare_file(self, Vec* listed, uint32_t root, const uint8_t* path,
                          const DirectoryFile* file) except -1:
        """List a new or changed file, or one of unknown stamp, the first time it is seen."""
        cdef int64_t base_row = find_row(&self.base, root, path, file.size)
        cdef NameIndex* index = <NameIndex*>self.indices.data + root
        cdef NameSlot* slot
        cdef Indexed* row
        if base_row >= 0 and not self.base.marks[base_row] & M_REPLACED:
            if (self.base.marks[base_row] & M_SEEN
                    or (is_same(&self.base.stamp[base_row], &file.stamp)
                        and not is_unknown(&file.stamp))):
                self.base.marks[base_row] |= M_SEEN
                return 0
        slot = index_find(index, path, file.size)
        check_memory(slot != NULL)
        if slot.value < 0:
            row = self.add_indexed(index, slot, root)
            row.in_index = self.replace_base_row(slot, root)
            if row.in_index:
                row.stamp = self.base.stamp[base_row]
        row = <Indexed*>self.indexed_files.data + slot.value
        if row.seen:
            return 0
        row.seen = True
        if not (row.in_index and is_same(&row.stamp, &file.stamp) and not is_unknown(&file.stamp)):
            list_file(listed, root, path, file.size, &file.stamp)
        return 0

    def find_missing(self):
        """Return the files of the index that were not found, of all roots; after `compare` only."""
        cdef size_t i
        cdef Indexed* row
        cdef Vec listed
        cdef Scratch scratch
        scratch_init(&scratch)
        try:
            scratch_vector(&scratch, &listed, sizeof(ListedFile))
            for i in range(self.base.count):
                if self.base.marks[i] == 0:
                    list_row(&listed, &self.base, i)
            for i in range(self.indexed_files.count):
                row = <Indexed*>self.indexed_files.data + i
                if row.in_index and not row.seen:
                    list_indexed(&listed, row)
            return sort_columns(&listed, self.roots)
        finally:
            scratch_free(&scratch)

    def find_missing_at(self, list roots not None, list paths not None):
        """Return the files of the index that were not found, at `paths` of each root or below."""
        cdef uint32_t root_number
        cdef Vec listed
        cdef Scratch scratch
        scratch_init(&scratch)
        try:
            scratch_vector(&scratch, &listed, sizeof(ListedFile))
            for root, names in zip(roots, paths):
                root_number = self.number_root(root)
                if names:
                    self.list_missing(&listed, root_number, names)
            return sort_columns(&listed, self.roots)
        finally:
            scratch_free(&scratch)

    cdef int list_missing(self, Vec* listed, uint32_t root_number, list names) except -1:
        """List the missing files of a root that are at one of the paths `names` or below it."""
        cdef NameIndex index
        cdef NameSlot* slot = NULL
        cdef Indexed* row
        cdef bytes path
        cdef size_t i
        cdef Scratch scratch
        scratch_init(&scratch)
        try:
            scratch_index(&scratch, &index, len(names))
            check_memory(not scratch.failed)
            for path in names:
                slot = index_find(&index, <const uint8_t*>PyBytes_AS_STRING(path),
                                  <uint32_t>len(path))
                check_memory(slot != NULL)
                index.count += slot.value < 0
                slot.value = 0
            for i in range(self.base.count):
                if (self.base.marks[i] == 0 and self.base.root[i] == <int32_t>root_number
                        and is_inside(&index, self.base.text + self.base.end[i], <uint32_t>(
                            self.base.end[i + 1] - self.base.end[i]))):
                    list_row(listed, &self.base, i)
            for i in range(self.indexed_files.count):
                row = <Indexed*>self.indexed_files.data + i
                if (row.root == root_number and row.in_index and not row.seen
                        and is_inside(&index, row.path, row.size)):
                    list_indexed(listed, row)
        finally:
            scratch_free(&scratch)
        return 0

    def files(self):
        """Return root and path of every file of the index or the trees; after `compare` only."""
        cdef size_t i
        cdef Indexed* row
        cdef list paths = []
        for i in range(self.base.count):
            if not self.base.marks[i] & M_REPLACED:
                paths.append((self.roots[self.base.root[i]], PyBytes_FromStringAndSize(
                    <const char*>self.base.text + self.base.end[i],
                    self.base.end[i + 1] - self.base.end[i])))
        for i in range(self.indexed_files.count):
            row = <Indexed*>self.indexed_files.data + i
            if row.in_index or row.seen:
                paths.append((self.roots[row.root], PyBytes_FromStringAndSize(
                    <const char*>row.path, row.size)))
        return paths

    def count(self):
        """Return the number of files of the index or the trees; after `compare` only."""
        cdef size_t i, count = 0
        cdef Indexed* row
        for i in range(self.base.count):
            count += not self.base.marks[i] & M_REPLACED
        for i in range(self.indexed_files.count):
            row = <Indexed*>self.indexed_files.data + i
            count += row.in_index or row.seen
        return count


def build_slots(bytes roots not None, bytes ends not None, bytes text not None):
    """Build the hash table of files for `set_base`: row numbers (int32), -1 for an empty slot."""
    cdef const int32_t* root = <const int32_t*>PyBytes_AS_STRING(roots)
    cdef const int64_t* end = <const int64_t*>PyBytes_AS_STRING(ends)
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(text)
    cdef size_t file_count = PyBytes_GET_SIZE(roots) // 4, slot_count = 64, i, slot
    cdef bytes table
    cdef int32_t* slots
    while slot_count < 2 * file_count:
        slot_count *= 2
    table = PyBytes_FromStringAndSize(NULL, 4 * slot_count)
    slots = <int32_t*>PyBytes_AS_STRING(table)
    memset(slots, 0xff, 4 * slot_count)
    for i in range(file_count):
        slot = hash_path(root[i], base + end[i], end[i + 1] - end[i]) & (slot_count - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (slot_count - 1)
        slots[slot] = <int32_t>i
    return table
