"""Host objects: which of their sections count, module ids, and the kernels that host code uses."""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from helpers.archive_builder import gnu
from helpers.cubin_builder import Cubin, one_kernel, with_wide_counts
from helpers.fatbin_builder import container, entry, host_object
from helpers.linked import functions
from helpers.threads import THREADS, threads

import pylink
from pylink._native.fatbin import collect_names, find_entries
from pylink.facts.inputkinds import HOST
from pylink.rowformats import ENTRY, FAULT, SOURCE


def kernels(*names: str) -> bytes:
    cubin = Cubin()
    for name in names:
        cubin.function(name, kernel=True)
    return cubin.build()


def host(
    cubin: bytes, references: list[bytes] | None = None, *, machine: int = 62, kind: str = "E"
) -> bytes:
    sections = [("__nv_relfatbin", container(entry(cubin, 80)))]
    if references is not None:
        sections.append((".nvHRKE", b"\0"))
        sections.append((f".nvHRK{kind}", b"".join(name + b"\0" for name in references) or b"\0"))
    return host_object(sections, machine)


def linked(*inputs: bytes, **options: Any) -> set[str]:
    """The kernels in the output."""
    pairs = [(f"{number}.o", data) for number, data in enumerate(inputs)]
    return functions(pylink.link(pairs, arch="sm_80", **options).image)


K = kernels("k1", "k2", "k2b")
OTHER = kernels("other")
PLAIN = host_object([(".text", b"\x90")])


def test_objects_of_every_host_are_linked() -> None:
    for machine in (3, 21, 40, 62, 183, 243):
        assert linked(host(K, machine=machine)) == {"k1", "k2", "k2b"}


def test_an_object_with_its_numbers_of_sections_in_the_first() -> None:
    assert linked(with_wide_counts(host(K, [b"k1"]))) == {"k1"}


def test_a_section_without_bytes_holds_no_device_code() -> None:
    empty = bytearray(host(OTHER))
    (table,) = struct.unpack_from("<Q", empty, 40)
    assert empty[table + 64 + 4] == 1
    empty[table + 64 + 4] = 8  # SHT_NOBITS
    assert linked(host(K), bytes(empty)) == {"k1", "k2", "k2b"}


def test_what_is_already_linked_or_has_no_device_code_is_ignored() -> None:
    already = host_object([(".nv_fatbin", container(entry(OTHER, 80)))])
    shared = bytearray(host(OTHER))
    shared[16] = 3  # ET_DYN
    assert linked(host(K), already, PLAIN, bytes(shared)) == {"k1", "k2", "k2b"}
    assert linked(PLAIN) == set()


@pytest.mark.parametrize(
    ("references", "stay"),
    [
        ([b"k1"], {"k1"}),
        ([b"k2"], {"k2"}),
        ([b"k2*"], {"k2", "k2b"}),
        ([b"*2"], {"k2"}),
        ([b"k*b", b"k1"], {"k1", "k2b"}),
        ([b"*"], {"k1", "k2", "k2b"}),
        ([b"k"], set()),
        ([b"unknown"], set()),
        ([], {"k1", "k2", "k2b"}),
        (None, {"k1", "k2", "k2b"}),
    ],
)
def test_kernels_that_host_code_does_not_name_are_removed(
    references: list[bytes] | None, stay: set[str]
) -> None:
    assert linked(host(K, references)) == stay
    assert linked(host(K, references), use_host_info=True) == stay
    assert linked(host(K, references), ignore_host_info=True) == {"k1", "k2", "k2b"}
    assert linked(host(K, references), relocatable_link=True) == {"k1", "k2", "k2b"}
    assert linked(host(K, references), debug=True) == {"k1", "k2", "k2b"}


def test_the_lists_of_all_objects_count_together() -> None:
    assert linked(host(K, [b"other", b"k1"]), host(OTHER, [b"k2"])) == {"k1", "k2", "other"}


@pytest.mark.parametrize("silent", [OTHER, container(entry(OTHER, 80)), host(OTHER), PLAIN])
def test_one_input_without_a_list_keeps_all_kernels(silent: bytes) -> None:
    assert linked(host(K, [b"k1"]), silent) >= {"k1", "k2", "k2b"}


def test_options_that_name_kernels_win() -> None:
    assert linked(host(K, [b"k1"]), kernels_used="k2") == {"k2", "k2b"}


def test_internal_names_are_for_internal_kernels() -> None:
    assert linked(host(K, [b"k1"], kind="I")) == set()


def registered(tmp_path: Path, *inputs: tuple[str, bytes], **options: Any) -> list[str]:
    file = tmp_path / "reg.c"
    pylink.link(list(inputs), arch="sm_80", register_link_binaries=str(file), **options)
    first, *calls = file.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    assert first == f"#define NUM_PRELINKED_OBJECTS {len(calls)}"
    return [call.removeprefix("DEFINE_REGISTER_FUNC(").removesuffix(")") for call in calls]


def test_what_host_code_names() -> None:
    lists = {f".nvHR{space}{kind}": b"" for space in "DC" for kind in "EI"}
    sections = [(name, f"{name}\0\0other\0".encode()) for name in lists]
    code = ("__nv_relfatbin", container(entry(K, 80)))
    silent = host_object([code, *sections])
    kernels = [(".nvHRKI", b"\0i"), (".nvHRKE", b"k\0\0\0k\0m")]
    telling = host_object([code, *sections, *kernels])
    extents = struct.pack("<4Q", 0, len(silent), 0, len(telling))
    arenas, homes = [silent, telling], struct.pack("<2i", 0, 1)
    _, rows, _ = find_entries(arenas, homes, extents, bytes([HOST] * 2))
    assert collect_names(arenas, homes, rows, [0]) is None  # kernels are not listed
    assert collect_names(arenas, homes, rows, [1, 0]) is None
    found = collect_names(arenas, homes, rows, [1, 1])
    assert found is not None
    variables = dict.fromkeys(name for each in lists for name in (each.encode(), b"other"))
    assert list(map(list, found)) == [[b"k", b"m"], [b"i"], list(variables)]
    for wrong in (-1, 2):
        with pytest.raises(IndexError, match=f"no source {wrong}"):
            collect_names(arenas, homes, rows, [wrong])


def test_the_device_runtime_has_no_say_where_it_is_not_taken() -> None:
    """Nothing tells which kernels host code uses of a file without lists."""
    inputs = [("a.o", host(K, [b"k1"])), ("libcudadevrt.a", gnu([("x.o", host(OTHER))]))]
    assert functions(pylink.link(inputs, arch="sm_80").image) == {"k1"}
    kept = pylink.link(inputs, arch="sm_80", keep_system_libraries=True).image
    assert functions(kept) == {"k1", "k2", "k2b", "other"}


def with_id(text: bytes, cubin: bytes, sm: int = 80) -> bytes:
    fatbin = container(entry(cubin, sm))
    return host_object([("__nv_module_id", text), ("__nv_relfatbin", fatbin)])


def test_members_that_the_host_may_take_are_listed(tmp_path: Path) -> None:
    used, spare = with_id(b"_used\0", K), with_id(b"_spare\0", OTHER)
    cubin = one_kernel("c").build()
    library = ("/lib.a", gnu([("spare.o", spare), ("c.cubin", cubin)]))
    assert registered(tmp_path, ("/a.o", used), library, lazy_archives=True) == ["_used", "_spare"]
    # The device runtime library is the host's where the link takes it.
    runtime = ("/libcudadevrt.a", library[1])
    assert registered(tmp_path, ("/a.o", used), runtime) == ["_used"]


def test_register_link_binaries_lists_module_ids(tmp_path: Path) -> None:
    other = container(entry(OTHER, 75))
    assert registered(
        tmp_path,
        ("/plain.o", PLAIN),
        ("/a.o", with_id(b"_id_a\0", K)),
        ("/b.cubin", OTHER),
        ("/no_id.o", host_object([("__nv_relfatbin", other)])),
        ("/two.o", with_id(b"_x\0\0\0_y\xe9", one_kernel("z").build())),
        ("/c.fatbin", container(entry(one_kernel("c").build(), 80))),
        ("/wrong.fatbin", other),
        ("/wrong.o", with_id(b"_wrong\0", OTHER, 75)),
    ) == ["_id_a", "_b_cubin", "_no_id_o", "_x", "_y\udce9", "_c_fatbin", "_wrong"]


@pytest.mark.parametrize(
    ("texts", "ids"),
    [
        ((b"_a\0", b"_b\xe9\0"), ["_a", "_b\udce9"]),
        ((b"_a\0", b"_b\0_c\0"), ["_a", "_b", "_c"]),
        ((b"_a\0\0_b\0", b"_c\0"), ["_a", "_b", "_c"]),
        ((b"_a\0\0", b"_b"), ["_a", "_b"]),
        ((b"_a", b"\0_b"), ["_a", "_b"]),
        ((b"_a\0", b"\0"), ["_a", ""]),
    ],
)
def test_ids_of_many_objects_are_those_of_each(
    tmp_path: Path, texts: tuple[bytes, bytes], ids: list[str]
) -> None:
    names = ("first", "second")
    inputs = [
        (f"/{name}.o", with_id(text, one_kernel(name).build()))
        for name, text in zip(names, texts, strict=True)
    ]
    assert registered(tmp_path, *inputs) == ids


def test_a_scan_does_not_depend_on_threads() -> None:
    damaged = host_object([("__nv_relfatbin", b"\1" * 40)])
    objects = [host(K), PLAIN, damaged, host(OTHER, [b"other"]), with_id(b"_x\0", K)] * 7
    offsets = [sum(map(len, objects[:number])) for number in range(len(objects))]
    extents = b"".join(
        struct.pack("<2Q", offset, len(data)) for offset, data in zip(offsets, objects, strict=True)
    )
    arenas = [b"".join(objects)]
    for count in (1, 3, len(objects)):
        results = []
        for thread_count in THREADS:
            with threads(thread_count):
                results.append(
                    find_entries(arenas, b"", extents[: 16 * count], bytes([HOST] * count))
                )
        assert results[0] == results[1] == results[2] == results[3]
    entries, sources, faults = results[0]
    assert [row[0] for row in ENTRY.iter_unpack(entries)] == [
        number for number in range(len(objects)) if number % 5 not in (1, 2)
    ]
    assert [row[0] for row in FAULT.iter_unpack(faults)] == [*range(2, len(objects), 5)]
    assert len(sources) == SOURCE.size * len(objects)


def test_patterns_agree_with_a_reference() -> None:
    """Random names and patterns over a small alphabet, as regular expressions match them."""
    rng = random.Random(5)
    for _ in range(60):
        found = {"".join(rng.choices("ab", k=rng.randrange(1, 6))) for _ in range(12)}
        patterns = ["".join(rng.choices("ab*", k=rng.randrange(1, 5))) for _ in range(3)]
        expressions = [re.compile(pattern.replace("*", ".*")) for pattern in patterns]
        wanted = {
            name for name in found if any(expression.fullmatch(name) for expression in expressions)
        }
        cubin = kernels(*sorted(found))
        assert linked(host(cubin, [pattern.encode() for pattern in patterns])) == wanted, patterns
