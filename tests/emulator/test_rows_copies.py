"""Rows about copies of weak functions and kernels, executed.

For each row a program whose result is known: nvlink's link is shown to be wrong, pylink's right, on
the architectures that the row names.
"""

from __future__ import annotations

import pytest
from helpers import oracle

from emulator.rows import (
    ALL,
    CHOSEN,
    LANES,
    MASK,
    chosen,
    compiled,
    executes,
    ours,
    plain,
    result,
    theirs,
)

pytestmark = oracle.needs_oracle


KERNEL = (
    CHOSEN
    + """
extern __device__ u called(u);
extern "C" __global__ void k(u *p) { p[threadIdx.x] = called(p[threadIdx.x]); }
"""
)


@executes("a table in constant memory with the address of a weak function")
@ALL
@pytest.mark.parametrize("name", ["plain", "chosen"])
def test_constant_table_of_a_weak_function_whose_copy_lost(arch: str, name: str) -> None:
    """The entry of nvlink's table is a null pointer."""
    first = CHOSEN + f"__device__ u unused(u x) {{ return {name}(x) + 1; }}"
    second = (
        CHOSEN
        + f"""
        __constant__ F functions[2] = {{{name}, {name}}};
        __device__ u called(u x) {{ return functions[x & 1](x); }}
    """
    )
    files = compiled([first, second, KERNEL], arch)
    expected = [globals()[name](x) for x in range(LANES)]
    assert result(theirs(files, arch), arch) == "jump to 0x0, where there is no code"
    assert result(ours(files, arch), arch) == expected
    # Where the copy of the table's file stays, both are right.
    files = compiled([second, first, KERNEL], arch)
    assert result(theirs(files, arch), arch) == expected
    assert result(ours(files, arch), arch) == expected


@ALL
@pytest.mark.parametrize("name", ["plain", "chosen"])
def test_address_that_a_function_of_a_lost_copy_takes(arch: str, name: str) -> None:
    """No difference: the table is in global memory, and a function of its file uses it."""
    first = CHOSEN + f"__device__ u unused(u x) {{ return {name}(x) + 1; }}"
    second = (
        CHOSEN
        + f"""
        __device__ F functions[2] = {{{name}, {name}}};
        __device__ u called(u x) {{ return functions[x & 1](x); }}
    """
    )
    files = compiled([first, second, KERNEL], arch)
    expected = [globals()[name](x) for x in range(LANES)]
    for link in (theirs, ours):
        assert result(link(files, arch), arch) == expected
        assert result(link([link(files, arch, ["-r"])], arch), arch) == expected


USER = (
    CHOSEN
    + """
extern __device__ F functions[2];
extern "C" __global__ void k(u *p) {
    u x = p[threadIdx.x];
    p[threadIdx.x] = functions[x & 1](x);
}
"""
)


@executes("a weak function that no kernel of the link calls")
@ALL
def test_weak_function_that_only_the_table_of_a_lost_copy_names(arch: str) -> None:
    """nvlink removes the function."""
    first = CHOSEN + "__device__ u unused(u x) { return plain(x) + 1; }"
    second = CHOSEN + "__device__ F functions[2] = {plain, plain};"
    files = compiled([first, second, USER], arch)
    assert result(theirs(files, arch), arch) == "jump to 0x0, where there is no code"
    assert result(ours(files, arch), arch) == [plain(x) for x in range(LANES)]


@executes("with copies of weak kernels")
@pytest.mark.parametrize("arch", ["100", "103", "120"])
def test_selected_kernels_with_copies_of_weak_kernels(arch: str) -> None:
    """nvlink ends with an internal error."""
    source = (
        CHOSEN
        + """
        template <int N> __global__ void weak(u *p) { p[threadIdx.x] = chosen(p[threadIdx.x]) + N; }
        template __global__ void weak<MARK>(u *);
        template __global__ void weak<5>(u *);
    """
    )
    files = compiled([source.replace("MARK", "1"), source.replace("MARK", "2")], arch)
    option = "--kernels-used=_Z4weakILi5EEvPj"
    done = oracle.link(files, arch, [option])
    expected = [chosen(x) + 5 & MASK for x in range(LANES)]
    assert result(ours(files, arch, [option]), arch, "_Z4weakILi5EEvPj") == expected
    assert done.image is None or result(done.image, arch, "_Z4weakILi5EEvPj") == expected


SWITCH = """
typedef unsigned u;
inline __device__ __noinline__ u weak(u x, u *q) {
    u r = x;
    BEFORE
    switch (x % 10) {
    case 0: r += 3; break;
    case 1: r = x * 5; break;
    case 2: r = x ^ 0x3c; break;
    case 3: r = x - 9; break;
    case 4: r = x << 1 | 1; break;
    case 5: r = ~x; break;
    case 6: r = x / 3; break;
    case 7: r = x * x; break;
    case 8: r = x + 1000; break;
    case 9: r = x * 77; break;
    }
    return r + AFTER;
}
"""


@executes("jump tables of a weak function copy")
@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("arch", ["80", "90a", "100", "103"])
def test_jump_tables_of_a_copy_that_a_later_one_replaced(arch: str, stages: int) -> None:
    """From sm_100 on nvlink's table has entries of the copy that went, if all is linked at once."""
    many = range(24)
    loads = " ".join(f"u a{i} = q[{i}];" for i in many)
    uses = " + ".join(f"a{i} * x / {i + 3}u" for i in many)
    # The first copy needs more registers for what never happens, so the second one replaces it.
    first = SWITCH.replace("BEFORE", loads).replace("AFTER", f"(q[99] == 123456u ? {uses} : 0u)")
    second = SWITCH.replace("BEFORE", "").replace("AFTER", "0u")
    user = """
        typedef unsigned u;
        extern __device__ u one(u, u *);
        extern __device__ u two(u, u *);
        __device__ u zeros[128];
        extern "C" __global__ void k(u *p) {
            p[threadIdx.x] = one(p[threadIdx.x], zeros) + two(p[threadIdx.x] + 1, zeros) * 3;
        }
    """
    files = compiled(
        [
            first + "__device__ u one(u x, u *q) { return weak(x, q); }",
            second + "__device__ u two(u x, u *q) { return weak(x, q); }",
            user,
        ],
        arch,
    )

    def weak(x: int) -> int:
        cases = [x + 3, x * 5, x ^ 0x3C, x - 9, x << 1 | 1, ~x, x // 3, x * x, x + 1000, x * 77]
        return cases[x % 10] & MASK

    expected = [weak(x) + weak(x + 1) * 3 & MASK for x in range(LANES)]
    found = []
    for link in (theirs, ours):
        given = [link(files[:2], arch, ["-r"]), files[2]] if stages == 2 else files
        found.append(result(link(given, arch), arch) == expected)
    assert found == [stages == 2 or arch in ("80", "90a"), True]
