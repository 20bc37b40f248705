"""Small links decompress the device runtime library only if they need one of its names."""

from __future__ import annotations

import random

import pytest
from helpers.archive_builder import gnu
from helpers.cubin_builder import Cubin, one_kernel
from helpers.fatbin_builder import container, entry, host_object
from helpers.linked import functions

import pylink
from pylink.diagnostics.errors import LinkError
from pylink.inputs import unpacking

NAMES = [f"f{number}" for number in range(6)]
RUNTIME = "libcudadevrt.a"
Input = tuple[str, bytes]


def hosted(cubin: bytes, mode: str = "none") -> bytes:
    return host_object([("__nv_relfatbin", container(entry(cubin, 80, mode=mode)))])


def cubin_of(defined: list[str], needed: list[str], kernel: str = "") -> bytes:
    cubin = Cubin()
    if kernel:
        cubin.function(kernel, kernel=True)
    for name in defined:
        cubin.function(name)
    for name in needed:
        cubin.external(name)
    return cubin.build()


def outcome(inputs: list[Input], *, relocatable: bool) -> tuple[bytes, list[str]]:
    """What a link makes: the image and messages, or no image."""
    try:
        result = pylink.link(inputs, arch="sm_80", relocatable_link=relocatable)
    except LinkError as error:
        return b"", [diagnostic.message for diagnostic in error.diagnostics]
    return result.image, [diagnostic.message for diagnostic in result.diagnostics]


def draw(chance: random.Random) -> list[Input]:
    """A program of some files, with the library at any place among them."""
    homes = {name: chance.randrange(4) for name in NAMES}
    inputs = []
    for number in range(chance.randint(1, 3)):
        defined = [name for name in NAMES if homes[name] == number]
        others = [name for name in NAMES if homes[name] != number]
        needed = chance.sample(others, min(len(others), chance.choice([0, 0, 1, 2])))
        data = cubin_of(defined, needed, f"k{number}")
        form = chance.choice(["cubin", "object", "object", "archive"])
        if form != "cubin":
            data = hosted(data, chance.choice(["none", "lz4", "zstd"]))
        if form == "archive":
            data = gnu([("m.o", data)])
        inputs.append((f"{number}.{form}", data))
    members = [(f"{name}.o", hosted(cubin_of([name], []), "zstd")) for name in NAMES]
    place = len(inputs) if chance.random() < 0.7 else chance.randrange(len(inputs))
    inputs.insert(place, (RUNTIME, gnu(chance.sample(members, 4))))
    return inputs


@pytest.mark.parametrize("seed", range(120))
def test_the_output_is_that_of_a_link_which_decompresses_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    inputs, relocatable = draw(chance), chance.random() < 0.2
    made = outcome(inputs, relocatable=relocatable)
    monkeypatch.setattr(unpacking, "MOST_SMALL", -1)
    assert made == outcome(inputs, relocatable=relocatable)


def linked(*inputs: Input) -> set[str]:
    return functions(pylink.link(inputs, arch="sm_80").image)


DAMAGED = entry(one_kernel("rt").build(), 80, mode="zstd", stored=b"damaged", stated=4096)
LIBRARY = gnu([("rt.o", host_object([("__nv_relfatbin", container(DAMAGED))]))])
WHOLE = hosted(cubin_of(["f"], [], "k"))
LACKS = hosted(cubin_of([], ["f"], "k"))


def test_a_library_that_no_name_needs_is_not_decompressed() -> None:
    assert linked(("a.o", WHOLE), (RUNTIME, LIBRARY)) == {"k"}
    assert linked(("a.o", LACKS), ("b.o", hosted(cubin_of(["f"], []))), (RUNTIME, LIBRARY)) == {"k"}


@pytest.mark.parametrize(
    "inputs",
    [
        [("a.o", LACKS), (RUNTIME, LIBRARY)],
        [("a.o", LACKS), (RUNTIME, LIBRARY), ("b.o", hosted(cubin_of(["f"], [])))],
        [(f"{number}.o", hosted(one_kernel(f"k{number}").build())) for number in range(65)]
        + [(RUNTIME, LIBRARY)],
    ],
    ids=["needed", "needed where it stands", "large"],
)
def test_other_links_decompress_it(inputs: list[Input]) -> None:
    with pytest.raises(LinkError, match=r"rt\.o"):
        linked(*inputs)


def test_a_library_that_is_kept_is_decompressed() -> None:
    with pytest.raises(LinkError, match=r"rt\.o"):
        pylink.link([("a.o", WHOLE), (RUNTIME, LIBRARY)], arch="sm_80", keep_system_libraries=True)
