"""Rows about constants of links of selected kernels, executed.

For each row a program whose result is known: nvlink's link is shown to be wrong, pylink's right, on
the architectures that the row names.
"""

from __future__ import annotations

from helpers import oracle

from emulator.rows import ALL, CHOSEN, LANES, compiled, executes, ours, result, theirs

pytestmark = oracle.needs_oracle


@executes("tables of addresses in constant memory with")
@ALL
def test_tables_of_addresses_with_selected_kernels(arch: str) -> None:
    """nvlink folds two tables of one size: what follows moves, or entries have no place."""
    source = (
        CHOSEN
        + """
        static __device__ __noinline__ u one(u x) { return x + 1; }
        static __device__ __noinline__ u two(u x) { return x + 2; }
        static __constant__ F MARK[3] = {one, two, one};
        __device__ u MARKed(u x) { return MARK[x % 3](x); }
    """
    )
    user = """
        typedef unsigned u;
        extern __device__ u aed(u);
        extern __device__ u bed(u);
        __constant__ u numbers[40] = {1, 2, 3, 5, 7};
        extern "C" __global__ void k(u *p) {
            u i = threadIdx.x;
            p[i] = aed(p[i]) + bed(p[i]) + 100 * numbers[i % 5];
        }
    """
    files = compiled([user, source.replace("MARK", "a"), source.replace("MARK", "b")], arch)
    numbers = (1, 2, 3, 5, 7)
    expected = [2 * (i + (2 if i % 3 == 1 else 1)) + 100 * numbers[i % 5] for i in range(LANES)]
    for order in (files, files[::-1]):
        for link in (theirs, ours):
            assert result(link(order, arch), arch) == expected
    for order in (files, files[::-1]):
        assert result(ours(order, arch, ["--kernels-used=k"]), arch) == expected
    assert result(theirs(files[::-1], arch, ["--kernels-used=k"]), arch) != expected
    refused = oracle.link(files, arch, ["--kernels-used=k"])
    assert "Internal error: relocation is past end of offset" in refused.stderr


@executes("tables of addresses in constant memory with")
@ALL
def test_tables_of_one_inline_function_with_selected_kernels(arch: str) -> None:
    """nvlink has one table, and reads past its end for the kernel of the other file."""
    source = """
        typedef unsigned u;
        typedef u (*F)(u);
        inline __device__ __noinline__ u both(u x) { return x * 3 + 1; }
        __constant__ F table_MARK[2] = {both, both};
        extern "C" __global__ void MARK(u *p) {
            u i = threadIdx.x;
            p[i] = table_MARK[i & 1](p[i]);
        }
    """
    files = compiled([source.replace("MARK", name) for name in ("k1", "k2")], arch)
    expected = [i * 3 + 1 for i in range(LANES)]
    for kernel in ("k1", "k2"):
        option = [f"--kernels-used={kernel}"]
        for order in (files, files[::-1]):
            assert result(ours(order, arch, option), arch, kernel) == expected
    for order, kernel in ((files, "k2"), (files[::-1], "k1")):
        image = theirs(order, arch, [f"--kernels-used={kernel}"])
        assert result(image, arch, kernel) != expected


@executes("constants with `--kernels-used`")
@ALL
def test_equal_constants_with_selected_kernels(arch: str) -> None:
    """Both links fold them, and code reads what follows at its old place."""
    source = """
        typedef unsigned u;
        __constant__ u MARK[SIZE] = {1, 2, 3, 4, 5, 6, 7, 8};
        extern "C" __global__ void k_MARK(u *p) { p[threadIdx.x] = MARK[threadIdx.x & 7]; }
    """
    files = compiled(
        [
            source.replace("MARK", name).replace("SIZE", size)
            for name, size in (("a", "8"), ("b", "8"), ("c", "40"))
        ],
        arch,
    )
    expected = [i % 8 + 1 for i in range(LANES)]
    for link in (theirs, ours):
        assert result(link(files, arch), arch, "k_c") == expected
        assert result(link(files, arch, ["--kernels-used=k_c"]), arch, "k_c") != expected
