"""Which architectures a step links for, and in which order: nvcc's -arch, -code and -gencode.

Options make pairs of a virtual and a real architecture. Virtual ones come in the order in which
they are first named; of one, what later options ask for comes first, and a list in brackets keeps
its order. PTX and LTO-IR that are asked for beside real code are not part of the result.
"""

from __future__ import annotations

from pylink.devicelink.request import NotOurs
from pylink.facts.target import ARCHITECTURES, NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT = "sm_75"
NOT_LINKED = ("compute_", "lto_")


def find_architectures(
    arch: str | None, codes: Sequence[str], specifications: Sequence[str]
) -> list[str]:
    """The architectures, such as `sm_90a`; NotOurs for what nvcc has to decide or to refuse."""
    if not (arch or codes or specifications):
        return [DEFAULT]
    groups: dict[str, list[str]] = {}
    if arch is not None:
        _take_arch(groups, arch, codes)
    elif codes:
        raise NotOurs(option="-code")
    for text in specifications:
        option = f"-gencode {text}"
        virtual, comma, code = text.replace(" ", "").partition(",code=")
        if not (comma and virtual.startswith("arch=compute_")):
            raise NotOurs(option=option)
        several = code[:1] + code[-1:] in ("[]", '""')
        named = code[1:-1].split(",") if several else [code]
        _take(groups, virtual.removeprefix("arch="), named, option)
    names = [name for group in groups.values() for name in group]
    numbers = {name for name in names if not name.endswith("f")}
    if any(name.removesuffix("f") in numbers for name in names if name.endswith("f")):
        raise NotOurs(option="-gencode")  # which is an error
    if not names:  # the result has no code, only registrations
        raise NotOurs(option=f"-arch {arch}" if arch else f"-gencode {specifications[0]}")
    return names


def _take_arch(groups: dict[str, list[str]], arch: str, codes: Sequence[str]) -> None:
    if arch in ("all", "all-major"):
        if codes:
            raise NotOurs(option="-code")
        majors: dict[int, int] = {}
        for sm in sorted(ARCHITECTURES):
            majors.setdefault(sm if arch == "all" else sm // 10, sm)
        for sm in majors.values():
            groups[f"compute_{sm}"] = [f"sm_{sm}"]
        return
    if arch.startswith("sm_"):
        if codes:
            raise NotOurs(option=f"-arch {arch}")
        _take(groups, arch.replace("sm_", "compute_"), [arch], f"-arch {arch}")
        return
    # Each of -code is an option of its own.
    for code in codes or [arch]:
        _take(groups, arch, [code], f"-arch {arch}")


def _take(groups: dict[str, list[str]], virtual: str, named: Sequence[str], option: str) -> None:
    """Add what one option asks for."""
    group = groups.setdefault(virtual, [])
    added = []
    for code in named:
        if code.startswith(NOT_LINKED):
            if code.partition("_")[2] not in NAMES:
                raise NotOurs(option=option)
            continue
        name = _real(virtual, code)
        if name is None:
            raise NotOurs(option=option)
        if name not in group and name not in added:
            added.append(name)
    group[:0] = added


def _real(virtual: str, code: str) -> str | None:
    """The name of real code for a virtual architecture; None where nvcc has to say what it is."""
    source, target = architecture_parts(virtual, "compute_"), architecture_parts(code, "sm_")
    if source is None or target is None:
        return None
    (from_sm, family), (to_sm, suffix) = source, target
    if family == "a" and (from_sm, "a") != (to_sm, suffix):
        return None
    if family == "f":
        row = ARCHITECTURES.get(from_sm)
        if row is None or to_sm not in row.related:
            return None
        suffix = suffix or "f"
    if to_sm < from_sm or virtual.partition("_")[2] not in NAMES or f"{to_sm}{suffix}" not in NAMES:
        return None
    return f"sm_{to_sm}{suffix}"


def architecture_parts(name: str, prefix: str) -> tuple[int, str] | None:
    """The number of an architecture and its letter: 90 and `a` of `sm_90a`; None for all else."""
    rest = name.removeprefix(prefix)
    letter = rest[-1:] if rest.endswith(("a", "f")) else ""
    digits = rest.removesuffix(letter)
    if not (name.startswith(prefix) and digits.isascii() and digits.isdigit()):
        return None
    return int(digits), letter
