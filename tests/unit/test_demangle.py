"""Names of the call graph against texts measured from nvlink."""

from __future__ import annotations

import string

import pytest
from helpers.mangled_names import READABLE, REFUSED, pairs

from pylink.demangle import demangle


@pytest.mark.parametrize(("name", "text"), pairs(*READABLE))
def test_names_read_as_in_nvlink(name: str, text: str) -> None:
    assert demangle(name) == text


def test_abbreviations_count_in_base_36() -> None:
    def pointer(stars: int) -> str:
        return "int " + "*" * stars

    name = f"_Z1f{'P' * 40}iS_S9_SA_SZ_S10_S12_"
    stars = [40, 1, 11, 12, 37, 38, 40]
    assert demangle(name) == f"f({', '.join(map(pointer, stars))})"
    assert demangle(f"_Z1f{'P' * 40}iS13_") == f"_Z1f{'P' * 40}iS13_"


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_mangled_name_stays(name: str) -> None:
    assert demangle(name) == name


def test_every_beginning_of_a_name_is_taken() -> None:
    for name, _ in pairs(*READABLE):
        for end in range(len(name)):
            assert isinstance(demangle(name[:end]), str)


def test_deep_nesting_is_no_error() -> None:
    name = "_Z1f" + "P" * 100_000 + "i"
    assert demangle(name) == name


@pytest.mark.parametrize(
    "name",
    [
        f"_Z{'9' * 5000}f",
        f"_Z1fA{'9' * 5000}_i",
        f"__nv_static_{'9' * 5000}_x__Z1fi",
        f"_Z1fS{'Z' * 100_000}_",
        f"_ZN{'1a' * 50_000}E",
    ],
    ids=["length", "array", "static", "abbreviation", "scopes"],
)
def test_numbers_and_names_without_end_are_not_mangled(name: str) -> None:
    assert demangle(name) == name


def test_abbreviations_of_abbreviations_do_not_fill_the_memory() -> None:
    """Each `pair` holds the one before it twice."""
    name = "_Z1f4pairIiiE" + "".join(f"S_IS{digit}_S{digit}_E" for digit in string.digits[:5])
    assert demangle(name).startswith("f(pair<int, int>, pair<pair<int, int>, pair<int, int>>, ")
    name += "".join(f"S_IS{digit}_S{digit}_E" for digit in "56789" + string.ascii_uppercase)
    assert demangle(name) == name
