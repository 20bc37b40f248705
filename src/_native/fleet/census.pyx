"""The files of a build tree beside what an index knows of them: which are new, changed or gone.

A tree has hundreds of thousands of files of which few have changed, so that looking at each and at
what is known of it is nearly all that a run costs. Folders are read level by level, those of one
level by several threads.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport ENOENT, ENOMEM, ENOTDIR
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

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
from fleet.folders cimport (
    AT_FDCWD, AT_SYMLINK_NOFOLLOW, Folder, FolderFile, Level, add_file, read_folder,
)
from fleet.indexedfiles cimport M_OVERTAKEN, M_SEEN, Base, Indexed, find_row, is_inside, place_of
from fleet.listedfiles cimport (
    ListedFile, file_columns, list_file, list_indexed, list_row, sort_columns,
)
from fleet.stamps cimport S_ISDIR, S_ISLNK, Stamp, Stat, fstatat, is_same, is_unknown

cdef enum:
    # A folder is as much work as so many bytes that are moved.
    FOLDER_COST = 1 << 20

cdef void free_indices(Vec* indices) noexcept nogil:
    cdef size_t i
    for i in range(indices.count):
        index_free(<NameIndex*>indices.data + i)


cdef void free_folders(Vec* folders) noexcept nogil:
    cdef Folder* folder
    cdef size_t i
    for i in range(folders.count):
        folder = <Folder*>folders.data + i
        vec_free(&folder.files)
        vec_free(&folder.inner)
        vec_free(&folder.text)


cdef class Census:
    cdef list roots             # bytes, in order of mention
    cdef list held              # buffers that rows point into
    cdef Base base
    cdef Vec indexed_files      # Indexed
    cdef Vec indices            # NameIndex by root: number of the Indexed
    cdef Vec folders            # Folder
    cdef TextPool paths         # of folders
    cdef Scratch scratch        # of all these
    cdef set walked             # numbers of roots

    def __cinit__(self):
        self.roots, self.held, self.walked = [], [], set()
        memset(&self.base, 0, sizeof(Base))
        scratch_init(&self.scratch)
        scratch_vector(&self.scratch, &self.indexed_files, sizeof(Indexed))
        scratch_vector(&self.scratch, &self.indices, sizeof(NameIndex))
        scratch_owns(&self.scratch, <Release>free_indices, &self.indices)
        scratch_vector(&self.scratch, &self.folders, sizeof(Folder))
        scratch_owns(&self.scratch, <Release>free_folders, &self.folders)
        scratch_texts(&self.scratch, &self.paths)
        check_memory(not self.scratch.failed)

    def __dealloc__(self):
        scratch_free(&self.scratch)

    cdef uint32_t root_number(self, bytes root) except? 0xffffffff:
        """The number of a root, which is added if it is new."""
        cdef NameIndex* index
        if root in self.roots:
            return <uint32_t>self.roots.index(root)
        index = <NameIndex*>vec_push(&self.indices)
        check_memory(index != NULL)
        index.slots = NULL
        check_memory(index_init(index, 64))
        self.roots.append(root)
        return <uint32_t>(len(self.roots) - 1)

    def rest_on(self, list names not None, bytes data not None, places not None):
        cdef Py_ssize_t ends, stamps, roots, slots, text, stop
        ends, stamps, roots, slots, text, stop = places
        cdef const char* start = PyBytes_AS_STRING(data)
        cdef Py_ssize_t n = (roots - stamps) // <Py_ssize_t>sizeof(Stamp), i
        cdef Py_ssize_t cells = (text - slots) // 4
        cdef Base* base = &self.base
        if self.roots or len(set(names)) != len(names):
            raise ValueError("there is something known already")
        if (not 0 <= ends <= stamps <= roots <= slots <= text <= stop <= PyBytes_GET_SIZE(data)
                or stamps - ends != 8 * (n + 1) or roots - stamps != n * <Py_ssize_t>sizeof(Stamp)
                or slots - roots != 4 * n or text - slots != 4 * cells or cells <= n
                or cells & (cells - 1) or (ends | stamps) % 8 or (roots | slots) % 4):
            raise ValueError("columns differ in length")
        base.end, base.stamp = <const int64_t*>(start + ends), <const Stamp*>(start + stamps)
        base.root, base.slots = <const int32_t*>(start + roots), <const int32_t*>(start + slots)
        base.text = <const uint8_t*>(start + text)
        for i in range(n):
            if not 0 <= base.root[i] < len(names):
                raise IndexError(f"no root {base.root[i]}")
            if not 0 <= base.end[i] <= base.end[i + 1] <= stop - text:
                raise IndexError(f"path {i} is outside the text")
        base.marks = <uint8_t*>scratch_zeros(&self.scratch, n + 1, 1)
        check_memory(base.marks != NULL)
        self.held.append(data)
        for name in names:
            self.root_number(name)
        base.mask, base.count = cells - 1, n

    def know(self, list names, bytes roots, bytes ends, bytes text, bytes stamps, bytes gone):
        cdef const int32_t* root = <const int32_t*>PyBytes_AS_STRING(roots)
        cdef const int64_t* end = <const int64_t*>PyBytes_AS_STRING(ends)
        cdef const Stamp* stamp = <const Stamp*>PyBytes_AS_STRING(stamps)
        cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(text)
        cdef const char* is_gone = PyBytes_AS_STRING(gone)
        cdef Py_ssize_t n = PyBytes_GET_SIZE(gone), i
        cdef NameIndex* index
        cdef NameSlot* slot
        cdef Indexed* row
        cdef list numbers = [self.root_number(name) for name in names]
        if (PyBytes_GET_SIZE(roots) != 4 * n or PyBytes_GET_SIZE(ends) != 8 * (n + 1)
                or PyBytes_GET_SIZE(stamps) != n * <Py_ssize_t>sizeof(Stamp)):
            raise ValueError("columns differ in length")
        self.held.append(text)
        for i in range(n):
            if root[i] < 0 or root[i] >= len(numbers):
                raise IndexError(f"no root {root[i]}")
            if not 0 <= end[i] <= end[i + 1] <= PyBytes_GET_SIZE(text):
                raise IndexError(f"path {i} is outside the text")
            index = <NameIndex*>self.indices.data + <uint32_t>numbers[root[i]]
            slot = index_find(index, base + end[i], <uint32_t>(end[i + 1] - end[i]))
            check_memory(slot != NULL)
            if slot.value < 0:
                self.add_indexed(index, slot, <uint32_t>numbers[root[i]])
                self.overtake(slot, <uint32_t>numbers[root[i]])
            row = <Indexed*>self.indexed_files.data + slot.value
            row.stamp = stamp[i]
            row.there = not is_gone[i]

    cdef Indexed* add_indexed(self, NameIndex* index, NameSlot* slot, uint32_t root) except NULL:
        """Add a row for a file without one; nothing about it is known yet."""
        cdef Indexed* row = <Indexed*>vec_push(&self.indexed_files)
        check_memory(row != NULL)
        slot.value = <int32_t>(self.indexed_files.count - 1)
        index.count += 1
        row.path, row.size, row.root = slot.text, slot.size, root
        row.there = row.seen = False
        return row

    cdef bint overtake(self, const NameSlot* slot, uint32_t root) noexcept:
        """Have a new row stand for the one below it; whether there was one."""
        cdef int64_t below = find_row(&self.base, root, slot.text, slot.size)
        if below < 0:
            return False
        self.base.marks[below] |= M_OVERTAKEN
        return True

    def known(self):
        cdef size_t i
        cdef Indexed* row
        cdef Vec listed
        cdef Scratch scratch
        scratch_init(&scratch)
        try:
            scratch_vector(&scratch, &listed, sizeof(ListedFile))
            for i in range(self.base.count):
                if not self.base.marks[i] & M_OVERTAKEN:
                    list_row(&listed, &self.base, i)
            for i in range(self.indexed_files.count):
                row = <Indexed*>self.indexed_files.data + i
                if row.there:
                    list_indexed(&listed, row)
            return file_columns(&listed, self.roots)
        finally:
            scratch_free(&scratch)

    def walk(self, bytes root not None, bytes skipped, int64_t largest, int64_t youngest):
        cdef size_t first = self.folders.count
        cdef uint32_t number = self.root_number(root)
        if number not in self.walked:
            self.walked.add(number)
            self.add_folder(number, PyBytes_AS_STRING(root), len(root), len(root.rstrip(b"/")) + 1)
        return self.enter(first, skipped, largest, youngest)

    def look(self, bytes root, list paths, bytes skipped, int64_t largest, int64_t youngest):
        cdef Level level
        cdef uint32_t number = self.root_number(root)
        cdef bytes base = root.rstrip(b"/") + b"/", path, full
        cdef size_t place = self.folders.count, files
        cdef Folder* folder
        cdef Stat status
        cdef bint is_there
        cdef list rest = []
        level.largest, level.youngest = largest, youngest
        # One for all files, from which paths start; nobody enters it.
        self.add_folder(number, PyBytes_AS_STRING(base), len(base), len(base))
        for path in paths:
            full = base + path
            if skipped and (full + b"/").startswith(skipped + b"/"):
                continue
            is_there = fstatat(
                AT_FDCWD, PyBytes_AS_STRING(full), &status, AT_SYMLINK_NOFOLLOW) == 0
            if is_there and S_ISDIR(status.st_mode):
                rest.append(path)
                self.add_folder(number, PyBytes_AS_STRING(full), len(full), len(base))
                continue
            folder = <Folder*>self.folders.data + place
            files = folder.files.count
            if is_there and S_ISLNK(status.st_mode):
                is_there = fstatat(AT_FDCWD, PyBytes_AS_STRING(full), &status, 0) == 0
            if is_there:
                check_memory(add_file(&level, folder, &status, PyBytes_AS_STRING(full),
                                      len(base)))
            if folder.files.count == files:
                rest.append(path)
        return self.enter(place + 1, skipped, largest, youngest), rest

    cdef list enter(self, size_t first, bytes skipped, int64_t largest, int64_t youngest):
        """Read the folders from `first` on and their subfolders.

        Returns the folders that could not be read, with the reason.
        """
        cdef Level level
        cdef size_t roots = self.folders.count, end, i, k
        cdef Folder* folder
        cdef const uint64_t* inner
        cdef list closed = []
        level.skipped = PyBytes_AS_STRING(skipped)
        level.largest, level.youngest = largest, youngest
        while first < self.folders.count:
            end = self.folders.count
            level.folders = <Folder*>self.folders.data + first
            with nogil:
                run_each(read_folder, &level, end - first, (end - first) * FOLDER_COST)
            for i in range(first, end):
                folder = <Folder*>self.folders.data + i
                check_memory(folder.error != ENOMEM)
                # Inside, what is not there any more has nothing in it.
                if folder.error and (i < roots or folder.error not in (ENOENT, ENOTDIR)):
                    closed.append((folder.path[:folder.size], folder.error))
                if folder.error:
                    folder.files.count = folder.inner.count = 0
                k = 0
                while k < folder.inner.count:
                    inner = <const uint64_t*>folder.inner.data + k
                    self.add_folder(folder.root, <const char*>folder.text.data + inner[0],
                                    inner[1], folder.start)
                    folder = <Folder*>self.folders.data + i     # adding one may move all
                    k += 2
            first = end
        return closed

    cdef int add_folder(self, uint32_t root, const char* path, uint64_t size,
                        uint64_t start) except -1:
        """Add a folder that is to be read."""
        cdef Folder* folder = <Folder*>vec_push(&self.folders)
        check_memory(folder != NULL)
        memset(folder, 0, sizeof(Folder))
        vec_init(&folder.files, sizeof(FolderFile))
        vec_init(&folder.inner, sizeof(uint64_t))
        vec_init(&folder.text, 1)
        folder.root, folder.size, folder.start = root, size, start
        folder.path = <char*>pool_allocate(&self.paths, size + 1)
        check_memory(folder.path != NULL)
        memcpy(folder.path, path, size)
        folder.path[size] = 0
        return 0

    def compare(self):
        cdef size_t i, k
        cdef Folder* folder
        cdef FolderFile* file
        cdef Vec listed
        cdef Scratch scratch
        scratch_init(&scratch)
        try:
            scratch_vector(&scratch, &listed, sizeof(ListedFile))
            for i in range(self.folders.count):
                folder = <Folder*>self.folders.data + i
                for k in range(folder.files.count):
                    file = <FolderFile*>folder.files.data + k
                    self.compare_file(&listed, folder.root, folder.text.data + file.path, file)
            return sort_columns(&listed, self.roots)
        finally:
            scratch_free(&scratch)

    cdef int compare_file(self, Vec* listed, uint32_t root, const uint8_t* path,
                          const FolderFile* file) except -1:
        """Tell of a file unless it is known as it is, or was listed."""
        cdef int64_t below = find_row(&self.base, root, path, file.size)
        cdef NameIndex* index = <NameIndex*>self.indices.data + root
        cdef NameSlot* slot
        cdef Indexed* row
        if below >= 0 and not self.base.marks[below] & M_OVERTAKEN:
            if (self.base.marks[below] & M_SEEN
                    or (is_same(&self.base.stamp[below], &file.stamp)
                        and not is_unknown(&file.stamp))):
                self.base.marks[below] |= M_SEEN
                return 0
        slot = index_find(index, path, file.size)
        check_memory(slot != NULL)
        if slot.value < 0:
            row = self.add_indexed(index, slot, root)
            row.there = self.overtake(slot, root)
            if row.there:
                row.stamp = self.base.stamp[below]
        row = <Indexed*>self.indexed_files.data + slot.value
        if row.seen:
            return 0
        row.seen = True
        if not (row.there and is_same(&row.stamp, &file.stamp) and not is_unknown(&file.stamp)):
            list_file(listed, root, path, file.size, &file.stamp)
        return 0

    def unseen(self):
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
                if row.there and not row.seen:
                    list_indexed(&listed, row)
            return sort_columns(&listed, self.roots)
        finally:
            scratch_free(&scratch)

    def unseen_of(self, list roots, list paths):
        cdef uint32_t number
        cdef Vec listed
        cdef Scratch scratch
        scratch_init(&scratch)
        try:
            scratch_vector(&scratch, &listed, sizeof(ListedFile))
            for root, inside in zip(roots, paths):
                number = self.root_number(root)
                if inside:
                    self.list_unseen(&listed, number, inside)
            return sort_columns(&listed, self.roots)
        finally:
            scratch_free(&scratch)

    cdef int list_unseen(self, Vec* listed, uint32_t number, list inside) except -1:
        """List the rows at or in some paths below one root."""
        cdef NameIndex index
        cdef NameSlot* slot = NULL
        cdef Indexed* row
        cdef bytes path
        cdef size_t i
        cdef Scratch scratch
        scratch_init(&scratch)
        try:
            scratch_index(&scratch, &index, len(inside))
            check_memory(not scratch.failed)
            for path in inside:
                slot = index_find(&index, <const uint8_t*>PyBytes_AS_STRING(path),
                                  <uint32_t>len(path))
                check_memory(slot != NULL)
                index.count += slot.value < 0
                slot.value = 0
            for i in range(self.base.count):
                if (self.base.marks[i] == 0 and self.base.root[i] == <int32_t>number
                        and is_inside(&index, self.base.text + self.base.end[i], <uint32_t>(
                            self.base.end[i + 1] - self.base.end[i]))):
                    list_row(listed, &self.base, i)
            for i in range(self.indexed_files.count):
                row = <Indexed*>self.indexed_files.data + i
                if (row.root == number and row.there and not row.seen
                        and is_inside(&index, row.path, row.size)):
                    list_indexed(listed, row)
        finally:
            scratch_free(&scratch)
        return 0

    def files(self):
        cdef size_t i
        cdef Indexed* row
        cdef list paths = []
        for i in range(self.base.count):
            if not self.base.marks[i] & M_OVERTAKEN:
                paths.append((self.roots[self.base.root[i]], PyBytes_FromStringAndSize(
                    <const char*>self.base.text + self.base.end[i],
                    self.base.end[i + 1] - self.base.end[i])))
        for i in range(self.indexed_files.count):
            row = <Indexed*>self.indexed_files.data + i
            if row.there or row.seen:
                paths.append((self.roots[row.root], PyBytes_FromStringAndSize(
                    <const char*>row.path, row.size)))
        return paths

    def count(self):
        cdef size_t i, count = 0
        cdef Indexed* row
        for i in range(self.base.count):
            count += not self.base.marks[i] & M_OVERTAKEN
        for i in range(self.indexed_files.count):
            row = <Indexed*>self.indexed_files.data + i
            count += row.there or row.seen
        return count


def slots_of(bytes roots not None, bytes ends not None, bytes text not None):
    cdef const int32_t* root = <const int32_t*>PyBytes_AS_STRING(roots)
    cdef const int64_t* end = <const int64_t*>PyBytes_AS_STRING(ends)
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(text)
    cdef size_t n = PyBytes_GET_SIZE(roots) // 4, cells = 64, i, at
    cdef bytes table
    cdef int32_t* slots
    while cells < 2 * n:
        cells *= 2
    table = PyBytes_FromStringAndSize(NULL, 4 * cells)
    slots = <int32_t*>PyBytes_AS_STRING(table)
    memset(slots, 0xff, 4 * cells)
    for i in range(n):
        at = place_of(root[i], base + end[i], end[i + 1] - end[i]) & (cells - 1)
        while slots[at] >= 0:
            at = (at + 1) & (cells - 1)
        slots[at] = <int32_t>i
    return table
