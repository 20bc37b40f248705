"""Pages that a process keeps from one link to the next: nobody sees that they were used before."""

from __future__ import annotations

import errno
import mmap
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from helpers.cubin_builder import Cubin

import pylink
from pylink._native import elfread

KERNELS = 8000  # whose tables have 16 MB
MOST_RECYCLED = 2560 << 20
OTHER_MREMAP = Path(__file__).parents[1] / "helpers" / "other_mremap.c"
SLOW_PAGES = Path(__file__).parents[1] / "helpers" / "slow_pages.c"
LARGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
# Sizes of the mappings that child processes get empty: recycled pages and nothing else.
RECYCLED = """
def recycled():
    size = total = 0
    with open("/proc/self/smaps") as file:
        lines = file.readlines()
    for line in lines:
        words = line.split()
        if words[0] == "Size:":
            size = int(words[1]) << 10
        elif words[0] == "VmFlags:" and "wf" in words:
            total += size
    return total
"""


@cache
def cubin(prefix: str) -> bytes:
    built = Cubin()
    for number in range(KERNELS):
        built.function(f"{prefix}{number}", code=bytes(16), kernel=True)
    return built.build()


def link(prefix: str) -> bytes:
    return pylink.link([cubin(prefix)], arch="sm_80").image


def recycled() -> int:
    found: dict[str, object] = {}
    exec(RECYCLED, found)
    return found["recycled"]()  # type: ignore[operator, no-any-return]


def in_a_process_of_its_own(folder: Path, code: str) -> list[int]:
    """The numbers that `code` prints; it has `link()`, `recycled()`, and `data`, a large cubin."""
    (folder / "large.cubin").write_bytes(cubin("kernel"))
    before = f"""
import os, pylink, resource
data = open({str(folder / "large.cubin")!r}, "rb").read()
def link():
    return pylink.link([data], arch="sm_80").image
{RECYCLED}"""
    done = subprocess.run(
        [sys.executable, "-c", before + code], capture_output=True, text=True, check=True
    )
    return [int(word) for word in done.stdout.split()]


def test_links_one_after_the_other_give_what_the_first_gave() -> None:
    first = {prefix: link(prefix) for prefix in ("kernel", "a_longer_name_of_a_kernel", "k")}
    assert recycled() > 0
    for _ in range(3):
        for prefix, image in first.items():
            assert link(prefix) == image


def links_are_equal_side_by_side(make: Callable[[str], bytes], prefixes: Sequence[str]) -> None:
    """Four links of each prefix in a thread of its own make what one link alone makes."""
    alone = {prefix: make(prefix) for prefix in prefixes}
    together: dict[str, set[bytes]] = {prefix: set() for prefix in prefixes}

    def links(prefix: str) -> None:
        for _ in range(4):
            together[prefix].add(make(prefix))

    threads = [threading.Thread(target=links, args=(prefix,)) for prefix in prefixes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == {prefix: {image} for prefix, image in alone.items()}


def test_threads_share_recycled_pages() -> None:
    prefixes = ["kernel", "another", "third", "k"]
    links_are_equal_side_by_side(link, prefixes)
    assert 0 < recycled() <= MOST_RECYCLED


def parsed(times: int) -> tuple[memoryview, memoryview]:
    """Tables of sections and symbols of so many cubins, each on pages of its own."""
    image = cubin("kernel")
    extents = struct.pack(
        f"<{2 * times}Q", *(number for i in range(times) for number in (i * len(image), len(image)))
    )
    _, sections, symbols, _ = elfread.parse(image * times, extents)
    return memoryview(sections), memoryview(symbols)


def test_no_more_than_so_many_are_kept() -> None:
    held = [parsed(64) for _ in range(33)]
    assert sum(sections.nbytes + symbols.nbytes for sections, symbols in held) > 1.2 * MOST_RECYCLED
    held.clear()
    assert MOST_RECYCLED // 2 < recycled() <= MOST_RECYCLED


def test_a_child_process_has_the_tables_of_its_parent() -> None:
    link("kernel")
    before = recycled()
    sections, symbols = parsed(1)
    assert recycled() < before
    expected = bytes(sections) + bytes(symbols)
    child = os.fork()
    if child == 0:
        os._exit(bytes(sections) + bytes(symbols) == expected)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_child_process_links_as_its_parent(tmp_path: Path) -> None:
    code = """
image = link()
print(recycled())
child = os.fork()
if child == 0:
    os._exit(all(link() == image for _ in range(3)))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(int(link() == image))
"""
    kept, equal_in_child, equal = in_a_process_of_its_own(tmp_path, code)
    assert kept > 0
    assert (equal_in_child, equal) == (1, 1)


def test_links_with_observers_read_to_recycled_pages(tmp_path: Path) -> None:
    """They are not mapped, and new memory is expensive; the pages come back when the link ends."""
    code = """
from pylink import pipeline
link(), link()
phase, during = pipeline.read, []
def read(sink, loaded):
    during.append(recycled())
    return phase(sink, loaded)
pipeline.read = read
before = recycled()
image = pylink.link([data], arch="sm_80", Map=os.devnull).image
after = recycled()
pipeline.read = phase
print(len(data), before, during[0], after, int(link() == image))
"""
    size, before, during, after, equal = in_a_process_of_its_own(tmp_path, code)
    assert equal == 1
    assert before - during >= size
    assert after >= before


def test_a_process_with_limited_address_space_keeps_none(tmp_path: Path) -> None:
    code = """
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
link()
print(recycled())
"""
    assert in_a_process_of_its_own(tmp_path, code) == [0]
    more = """
from pylink._native import elfread
extents = b"".join(n.to_bytes(8, "little") for i in range(16) for n in (i * len(data), len(data)))
held = [elfread.parse(data * 16, extents) for _ in range(6)]
held.clear()
print(recycled())
"""
    kept, left = in_a_process_of_its_own(tmp_path, more + code)
    assert kept > 0
    assert left == 0


@pytest.mark.parametrize("how", ["one", "seldom"])
def test_pages_that_cannot_move_are_copied(tmp_path: Path, how: str) -> None:
    """Blocks grow twice and more, then lie on recycled pages of several mappings."""
    prefixes = ["kernel", "another", "third"]
    for prefix in prefixes:
        (tmp_path / prefix).write_bytes(cubin(prefix))
    library = tmp_path / "other_mremap.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, OTHER_MREMAP], check=True)
    code = """
import hashlib, pylink, sys
for names in [sys.argv[1:], sys.argv[2:], sys.argv[1:]]:
    data = [open(name, "rb").read() for name in names]
    print(hashlib.sha256(pylink.link(data, arch="sm_80").image).hexdigest())
"""
    command = [sys.executable, "-c", code, *(str(tmp_path / prefix) for prefix in prefixes)]
    plain = subprocess.run(command, capture_output=True, text=True, check=True)
    other = {"LD_PRELOAD": str(library), "MREMAP": how}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | other
    )
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    assert "moves pages" in done.stderr


def test_a_process_that_ends_after_a_link_keeps_none(tmp_path: Path) -> None:
    code = """
from pylink._native.inputfiles import keep_memory
keep_memory()
link()
print(recycled())
"""
    assert in_a_process_of_its_own(tmp_path, code) == [0]


def test_the_kernel_may_have_what_is_kept(tmp_path: Path) -> None:
    code = """
link()
lines = [line.split() for line in open("/proc/self/smaps") if line.startswith("LazyFree:")]
print(sum(int(words[1]) for words in lines) << 10)
"""
    (free,) = in_a_process_of_its_own(tmp_path, code)
    assert free >= 4 << 20


@pytest.mark.skipif(
    "[always]" in LARGE_PAGES,
    reason="faults count pages of one size",
)
@pytest.mark.parametrize("thread", ["main", "other"])
def test_images_of_one_step_take_the_pages_of_the_one_before(thread: str) -> None:
    """Each is a bit larger than the last, which the C library would get from the system anew."""
    code = f"""
import resource, sys, threading
from pylink._native.inputfiles import keep_blocks
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def images():
    for number in range(12, 20):
        image = bytes([1]) * (number << 20)
        del image
        if number == 12:
            found.append(faults())
    found.append(faults())
found = []
if sys.argv[1:] == ["keep"]:
    keep_blocks(owns_process=False)
if {thread == "main"}:
    images()
else:
    runner = threading.Thread(target=images)
    runner.start()
    runner.join()
print(found[1] - found[0])
"""
    taken = []
    for words in ([], ["keep"]):
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        taken.append(int(done.stdout))
    page = os.sysconf("SC_PAGE_SIZE")
    assert taken[1] * page <= 12 << 20
    assert taken[0] > 4 * taken[1]


def test_a_later_link_reads_its_files_to_recycled_pages(tmp_path: Path) -> None:
    """Nobody waits for a lease then, and the pages are kept for the link after it."""
    (tmp_path / "other.cubin").write_bytes(cubin("another"))
    code = f"""
paths = [{str(tmp_path / "large.cubin")!r}, {str(tmp_path / "other.cubin")!r}]
size = sum(os.path.getsize(path) for path in paths)
def link_files():
    return pylink.link(paths, arch="sm_80").image
first = link_files()
tables = recycled()
print(int(link_files() == first))
print(int(recycled() >= tables + size // 2))
print(int(link_files() == first and recycled() >= tables + size // 2))
os.rename(paths[1], paths[1] + ".old")
open(paths[1], "wb").write(open(paths[1] + ".old", "rb").read().replace(b"another", b"others_"))
changed = link_files()
print(int(changed == first.replace(b"another", b"others_")))
os.rename(paths[1] + ".old", paths[1])
child = os.fork()
if child == 0:
    os._exit(link_files() == first)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert in_a_process_of_its_own(tmp_path, code) == [1, 1, 1, 1, 1]


def can_collapse() -> bool:
    """Whether the system makes a large page of small ones when it is told to: Linux since 6.1."""
    with mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pages:
        pages.write(bytes(len(pages)))
        try:
            pages.madvise(25)  # MADV_COLLAPSE
        except OSError as error:
            return error.errno != errno.EINVAL
        return True


def large_page_numbers(folder: Path, fast_pages: int, code: str) -> list[int]:
    """The numbers that `code` prints in a process whose later large pages are all slow.

    `code` has `paths` of two large cubins, and `large_percent()`.
    """
    library = folder / "slow_pages.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SLOW_PAGES, "-ldl"], check=True)
    (folder / "large.cubin").write_bytes(cubin("kernel"))
    (folder / "other.cubin").write_bytes(cubin("another"))
    before = f"""
import os, pylink
paths = [{str(folder / "large.cubin")!r}, {str(folder / "other.cubin")!r}]
{RECYCLED}
def large_percent():
    # Of the memory of recycled pages, how much is large pages.
    large = resident = total = 0
    for line in open("/proc/self/smaps"):
        words = line.split()
        if words[0] == "Rss:":
            resident = int(words[1])
        elif words[0] == "AnonHugePages:":
            huge = int(words[1])
        elif words[0] == "VmFlags:" and "wf" in words:
            large += huge
            total += resident
    return large * 100 // total
"""
    done = subprocess.run(
        [sys.executable, "-c", before + code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LD_PRELOAD": str(library), "FAST_PAGES": str(fast_pages)},
    )
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize(
    ("fast_pages", "least", "most"),
    [(1000, 0 if "[never]" in LARGE_PAGES else 70, 100), (1, 0, 30)],
)
def test_each_large_buffer_times_a_large_page(
    tmp_path: Path, fast_pages: int, least: int, most: int
) -> None:
    """A fast page says little about the next: a hypervisor may have only a few at hand."""
    code = """
pylink.link(paths, arch="sm_80")
print(large_percent())
"""
    assert least <= large_page_numbers(tmp_path, fast_pages, code)[0] <= most


def test_small_pages_become_large_in_a_process_that_links_often(tmp_path: Path) -> None:
    """They do so while each large page is slow to get: every later link gets the time back."""
    code = """
images = {pylink.link(paths, arch="sm_80").image for _ in range(2)}
print(large_percent())
for links in range(1, 500):
    images.add(pylink.link(paths, arch="sm_80").image)
    if large_percent() > 70:
        break
print(large_percent(), links, len(images))
"""
    before, after, links, images = large_page_numbers(tmp_path, 0, code)
    assert before < 30
    # A link spends little time on it, so a few links are needed.
    assert after > 70 if can_collapse() else after < 30, links
    assert images == 1


def test_threads_read_files_to_pages_of_their_own(tmp_path: Path) -> None:
    prefixes = ["kernel", "another", "third"]
    for prefix in prefixes:
        (tmp_path / prefix).write_bytes(cubin(prefix))
    link("kernel")

    def link_file(prefix: str) -> bytes:
        return pylink.link([tmp_path / prefix], arch="sm_80").image

    links_are_equal_side_by_side(link_file, prefixes)


def test_medium_tables_share_recycled_pages() -> None:
    """Those of 500 kernels: what was in a page before is not in them."""
    built = Cubin()
    for number in range(500):
        built.function(f"medium{number}", code=bytes(16), kernel=True)
    small = built.build()
    extents = struct.pack("<2Q", 0, len(small))
    held = [elfread.parse(cubin("kernel"), struct.pack("<2Q", 0, len(cubin("kernel"))))]
    held.clear()
    before = recycled()
    held = [elfread.parse(small, extents) for _ in range(60)]
    expected = [bytes(table) for table in held[0][:3]]
    assert 64 << 10 < len(expected[1]) < 1 << 20
    assert all([bytes(table) for table in tables[:3]] == expected for tables in held)
    assert recycled() < before
    del held[::2]
    more = [elfread.parse(small, extents) for _ in range(60)]
    assert all([bytes(table) for table in tables[:3]] == expected for tables in held + more)
    held.clear()
    more.clear()
    # More runs of pages than so many are not kept.
    assert recycled() >= before - (16 << 20)
