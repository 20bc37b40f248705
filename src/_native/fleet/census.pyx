"""The files of a build tree beside what an index knows of them: who is new, changed or gone.

A tree has hundreds of thousands of files of which few have changed, so that looking at each and at
what is known of it is nearly all that a run costs. Folders are read level by level, those of one
level by two threads.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport ENOENT, ENOMEM, ENOTDIR
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcmp, memcpy, memset

from folders cimport *
from names cimport *
from stamps cimport *
from vec cimport *
from workers cimport *

cdef enum:
    # A folder is as much work as so many bytes that are moved.
    AS_BYTES = 1 << 20

# A file that an index knows of.
cdef struct Known:
    const uint8_t* path         # below the root
    uint32_t size
    uint32_t root
    Stamp stamp
    bint there                  # as of the last run
    bint seen                   # by this one, which is all where it is not there


# A file to tell of.
cdef struct Told:
    const uint8_t* path
    const Stamp* stamp
    uint32_t size
    uint32_t root
    uint32_t rank               # of the root among their names


cdef class Census:
    """What an index knows of trees, and what is in them."""

    cdef list roots             # bytes, in order of mention
    cdef list held              # buffers that rows point into
    cdef Vec known_files        # Known
    cdef Vec indices            # NameIndex by root: number of the Known
    cdef Vec folders            # Folder
    cdef set walked             # numbers of roots

    def __cinit__(self):
        self.roots, self.held, self.walked = [], [], set()
        vec_init(&self.known_files, sizeof(Known))
        vec_init(&self.indices, sizeof(NameIndex))
        vec_init(&self.folders, sizeof(Folder))

    def __dealloc__(self):
        cdef size_t i
        cdef Folder* folder
        for i in range(self.indices.count):
            index_free(<NameIndex*>self.indices.data + i)
        for i in range(self.folders.count):
            folder = <Folder*>self.folders.data + i
            vec_free(&folder.files)
            vec_free(&folder.inner)
            vec_free(&folder.text)
            free(folder.path)
        vec_free(&self.known_files)
        vec_free(&self.indices)
        vec_free(&self.folders)

    cdef uint32_t root_number(self, bytes root) except? 0xffffffff:
        cdef NameIndex* index
        if root in self.roots:
            return <uint32_t>self.roots.index(root)
        index = <NameIndex*>vec_push(&self.indices)
        if index == NULL:
            raise MemoryError
        index.slots = NULL
        if not index_init(index, 64):
            raise MemoryError
        self.roots.append(root)
        return <uint32_t>(len(self.roots) - 1)

    def know(self, list names, bytes roots, bytes ends, bytes text, bytes stamps, bytes gone):
        """Take rows of an index, which count more than those before; see census.pyi."""
        cdef const int32_t* root = <const int32_t*>PyBytes_AS_STRING(roots)
        cdef const int64_t* end = <const int64_t*>PyBytes_AS_STRING(ends)
        cdef const Stamp* stamp = <const Stamp*>PyBytes_AS_STRING(stamps)
        cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(text)
        cdef const char* is_gone = PyBytes_AS_STRING(gone)
        cdef Py_ssize_t n = PyBytes_GET_SIZE(gone), i
        cdef NameIndex* index
        cdef NameSlot* slot
        cdef Known* row
        cdef list numbers = [self.root_number(name) for name in names]
        if (PyBytes_GET_SIZE(roots) != 4 * n or PyBytes_GET_SIZE(ends) != 8 * (n + 1)
                or PyBytes_GET_SIZE(stamps) != n * <Py_ssize_t>sizeof(Stamp)):
            raise ValueError("columns differ in length")
        self.held.append(text)
        if len(numbers) == 1:
            index = <NameIndex*>self.indices.data + <uint32_t>numbers[0]
            if index.count == 0:
                index_free(index)
                if not index_init(index, n):
                    raise MemoryError
        for i in range(n):
            if root[i] < 0 or root[i] >= len(numbers):
                raise IndexError(f"no root {root[i]}")
            if not 0 <= end[i] <= end[i + 1] <= PyBytes_GET_SIZE(text):
                raise IndexError(f"path {i} is outside the text")
            index = <NameIndex*>self.indices.data + <uint32_t>numbers[root[i]]
            slot = index_find(index, base + end[i], <uint32_t>(end[i + 1] - end[i]))
            if slot == NULL:
                raise MemoryError
            if slot.value < 0:
                self.add_known(index, slot, <uint32_t>numbers[root[i]])
            row = <Known*>self.known_files.data + slot.value
            row.stamp = stamp[i]
            row.there = not is_gone[i]

    cdef Known* add_known(self, NameIndex* index, NameSlot* slot, uint32_t root) except NULL:
        """A row for a file that has none; nothing of it is known yet."""
        cdef Known* row = <Known*>vec_push(&self.known_files)
        if row == NULL:
            raise MemoryError
        slot.value = <int32_t>(self.known_files.count - 1)
        index.count += 1
        row.path, row.size, row.root = slot.text, slot.size, root
        row.there = row.seen = False
        return row

    def known(self):
        """What `know` takes but the last, of all files that are there; see census.pyi."""
        cdef size_t i
        cdef Known* row
        cdef Vec told
        vec_init(&told, sizeof(Told))
        try:
            for i in range(self.known_files.count):
                row = <Known*>self.known_files.data + i
                if row.there:
                    self.tell(&told, row, &row.stamp)
            return self.columns(&told)
        finally:
            vec_free(&told)

    def known_roots(self):
        """The roots that files are known of."""
        cdef size_t i
        cdef set found = set()
        for i in range(self.known_files.count):
            if (<Known*>self.known_files.data + i).there:
                found.add((<Known*>self.known_files.data + i).root)
        return [self.roots[number] for number in sorted(found)]

    def walk(self, list roots, bytes skipped, int64_t largest, int64_t youngest):
        """Look at all files below these roots; see census.pyi."""
        cdef size_t first = self.folders.count
        for root in roots:
            number = self.root_number(root)
            if number not in self.walked:
                self.walked.add(number)
                self.add_folder(number, PyBytes_AS_STRING(root), len(root),
                                len(root.rstrip(b"/")) + 1)
        return self.enter(first, skipped, largest, youngest)

    def look(self, bytes root, list paths, bytes skipped, int64_t largest, int64_t youngest):
        """Look at some files below a root, and at all in some folders; see census.pyi."""
        cdef Level level
        cdef uint32_t number = self.root_number(root)
        cdef bytes base = root.rstrip(b"/") + b"/", path, full
        cdef size_t place = self.folders.count, files
        cdef Folder* folder
        cdef Stat status
        cdef list rest = []
        level.largest, level.youngest = largest, youngest
        # One for all files, from which paths start; nobody enters it.
        self.add_folder(number, PyBytes_AS_STRING(base), len(base), len(base))
        for path in paths:
            full = base + path
            if skipped and (full + b"/").startswith(skipped + b"/"):
                continue
            if fstatat(AT_FDCWD, PyBytes_AS_STRING(full), &status, AT_SYMLINK_NOFOLLOW) == 0 and (
                    S_ISDIR(status.st_mode)):
                rest.append(path)
                self.add_folder(number, PyBytes_AS_STRING(full), len(full), len(base))
                continue
            folder = <Folder*>self.folders.data + place
            files = folder.files.count
            if not add_file(&level, folder, AT_FDCWD, PyBytes_AS_STRING(full), len(base)):
                raise MemoryError
            if folder.files.count == files:
                rest.append(path)
        return self.enter(place + 1, skipped, largest, youngest), rest

    cdef list enter(self, size_t first, bytes skipped, int64_t largest, int64_t youngest):
        """Read the folders from number `first` on, and those in them; who was closed, and why."""
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
                for_each(read_folder, &level, end - first, (end - first) * AS_BYTES)
            for i in range(first, end):
                folder = <Folder*>self.folders.data + i
                if folder.error == ENOMEM:
                    raise MemoryError
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
        cdef Folder* folder = <Folder*>vec_push(&self.folders)
        if folder == NULL:
            raise MemoryError
        memset(folder, 0, sizeof(Folder))
        vec_init(&folder.files, sizeof(File))
        vec_init(&folder.inner, sizeof(uint64_t))
        vec_init(&folder.text, 1)
        folder.root, folder.size, folder.start = root, size, start
        folder.path = <char*>malloc(size + 1)
        if folder.path == NULL:
            raise MemoryError
        memcpy(folder.path, path, size)
        folder.path[size] = 0
        return 0

    def compare(self):
        """The files that were found and are not known as they are; see census.pyi."""
        cdef size_t i, k
        cdef Folder* folder
        cdef File* file
        cdef NameIndex* index
        cdef NameSlot* slot
        cdef Known* row
        cdef Vec told
        vec_init(&told, sizeof(Told))
        try:
            for i in range(self.folders.count):
                folder = <Folder*>self.folders.data + i
                index = <NameIndex*>self.indices.data + folder.root
                for k in range(folder.files.count):
                    file = <File*>folder.files.data + k
                    slot = index_find(index, folder.text.data + file.path, file.size)
                    if slot == NULL:
                        raise MemoryError
                    if slot.value < 0:
                        self.add_known(index, slot, folder.root)
                    row = <Known*>self.known_files.data + slot.value
                    if row.seen:
                        continue
                    row.seen = True
                    if not (row.there and is_same(&row.stamp, &file.stamp)
                            and not is_unknown(&file.stamp)):
                        self.tell(&told, row, &file.stamp)
            return self.sorted_columns(&told)
        finally:
            vec_free(&told)

    def unseen(self):
        """The files that an index knows and that were not found, below whatever root."""
        cdef size_t i
        cdef Known* row
        cdef Vec told
        vec_init(&told, sizeof(Told))
        try:
            for i in range(self.known_files.count):
                row = <Known*>self.known_files.data + i
                if row.there and not row.seen:
                    self.tell(&told, row, &row.stamp)
            return self.sorted_columns(&told)
        finally:
            vec_free(&told)

    def unseen_of(self, list roots, list paths):
        """Of these those that are files of these paths, or in folders of these; see census.pyi."""
        cdef NameIndex index
        cdef NameSlot* slot = NULL
        cdef Known* row
        cdef bytes path
        cdef list inside
        cdef uint32_t number
        cdef size_t i
        cdef Vec told
        vec_init(&told, sizeof(Told))
        index.slots = NULL
        try:
            for root, inside in zip(roots, paths):
                number = self.root_number(root)
                index_free(&index)
                if not index_init(&index, len(inside)):
                    raise MemoryError
                for path in inside:
                    slot = index_find(&index, <const uint8_t*>PyBytes_AS_STRING(path),
                                      <uint32_t>len(path))
                    if slot == NULL:
                        raise MemoryError
                    index.count += slot.value < 0
                    slot.value = 0
                if index.count == 0:
                    continue
                for i in range(self.known_files.count):
                    row = <Known*>self.known_files.data + i
                    if (row.root == number and row.there and not row.seen
                            and is_inside(&index, row.path, row.size)):
                        self.tell(&told, row, &row.stamp)
            return self.sorted_columns(&told)
        finally:
            index_free(&index)
            vec_free(&told)

    def files(self):
        """The root and path of every file that is known or was found."""
        cdef size_t i
        cdef Known* row
        cdef list found = []
        for i in range(self.known_files.count):
            row = <Known*>self.known_files.data + i
            if row.there or row.seen:
                found.append((self.roots[row.root], PyBytes_FromStringAndSize(
                    <const char*>row.path, row.size)))
        return found

    def count(self):
        """How many files are known or were found."""
        cdef size_t i, count = 0
        cdef Known* row
        for i in range(self.known_files.count):
            row = <Known*>self.known_files.data + i
            count += row.there or row.seen
        return count

    cdef int tell(self, Vec* told, const Known* row, const Stamp* stamp) except -1:
        cdef Told* one = <Told*>vec_push(told)
        if one == NULL:
            raise MemoryError
        one.path, one.size, one.root, one.stamp = row.path, row.size, row.root, stamp
        return 0

    cdef tuple sorted_columns(self, Vec* told):
        """Columns of these files in the order of their roots' names and of their paths."""
        cdef list ranks = sorted(range(len(self.roots)), key=self.roots.__getitem__)
        cdef Told* one = <Told*>told.data
        cdef dict rank = {number: place for place, number in enumerate(ranks)}
        cdef size_t i
        for i in range(told.count):
            one[i].rank = rank[one[i].root]
        if told.count:
            with nogil:
                qsort(told.data, told.count, sizeof(Told), by_path)
        return self.columns(told)

    cdef tuple columns(self, const Vec* told):
        """Roots, the number of each file's, where its path ends, paths, and stamps."""
        cdef const Told* one = <const Told*>told.data
        cdef size_t i, size = 0
        cdef bytes roots = PyBytes_FromStringAndSize(NULL, 4 * told.count)
        cdef bytes ends = PyBytes_FromStringAndSize(NULL, 8 * (told.count + 1))
        cdef bytes stamps = PyBytes_FromStringAndSize(NULL, told.count * sizeof(Stamp)), text
        cdef int32_t* root = <int32_t*>PyBytes_AS_STRING(roots)
        cdef int64_t* end = <int64_t*>PyBytes_AS_STRING(ends)
        cdef Stamp* stamp = <Stamp*>PyBytes_AS_STRING(stamps)
        cdef char* place
        for i in range(told.count):
            root[i], end[i], stamp[i] = <int32_t>one[i].root, size, one[i].stamp[0]
            size += one[i].size
        end[told.count] = size
        text = PyBytes_FromStringAndSize(NULL, size)
        place = PyBytes_AS_STRING(text)
        for i in range(told.count):
            memcpy(place + end[i], one[i].path, one[i].size)
        return list(self.roots), roots, ends, text, stamps


cdef int by_path(const void* left, const void* right) noexcept nogil:
    cdef const Told* a = <const Told*>left
    cdef const Told* b = <const Told*>right
    cdef int found
    if a.rank != b.rank:
        return -1 if a.rank < b.rank else 1
    found = memcmp(a.path, b.path, min(a.size, b.size))
    if found == 0:
        found = (a.size > b.size) - (a.size < b.size)
    return found


cdef bint is_inside(NameIndex* index, const uint8_t* path, uint32_t length) noexcept nogil:
    """Whether an index has the path, or a folder that it is in."""
    cdef int64_t size
    cdef NameSlot* slot
    for size in range(<int64_t>length, -1, -1):
        if size in (0, length) or path[size] == c"/":
            slot = index_find(index, path, <uint32_t>size)
            if slot != NULL and slot.value == 0:
                return True
    return False
