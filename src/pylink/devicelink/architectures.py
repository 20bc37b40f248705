"""The architectures of a step and their order, from nvcc's -arch, -code and -gencode.

Options name pairs of a virtual and a real architecture. Virtual ones are in the order in which
they are first named. The real ones of a virtual architecture are in reverse order of the options; a
list in brackets keeps its order. PTX and LTO-IR are not part of the result.
"""

from __future__ import annotations

from pylink.devicelink.request import LeftToNvcc
from pylink.facts.target import ARCHITECTURES, NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT = "sm_75"
NOT_LINKED = ("compute_", "lto_")


def find_architectures(
    arch: str | None, codes: Sequence[str], specifications: Sequence[str]
) -> list[str]:
    """The architectures, such as `sm_90a`; LeftToNvcc if nvcc must decide or refuse the options."""
    if not (arch or codes or specifications):
        return [DEFAULT]
    groups: dict[str, list[str]] = {}
    if arch is not None:
        _add_arch(groups, arch, codes)
    elif codes:
        raise LeftToNvcc(option="-code")
    for text in specifications:
        option = f"-gencode {text}"
        virtual, comma, code = text.replace(" ", "").partition(",code=")
        if not (comma and virtual.startswith("arch=compute_")):
            raise LeftToNvcc(option=option)
        several = code[:1] + code[-1:] in ("[]", '""')
        listed_codes = code[1:-1].split(",") if several else [code]
        _add_codes(groups, virtual.removeprefix("arch="), listed_codes, option)
    names = [name for group in groups.values() for name in group]
    numbers = {name for name in names if not name.endswith("f")}
    if any(name.removesuffix("f") in numbers for name in names if name.endswith("f")):
        raise LeftToNvcc(option="-gencode")  # an error of nvcc
    if not names:  # the result has no code, only registrations
        raise LeftToNvcc(option=f"-arch {arch}" if arch else f"-gencode {specifications[0]}")
    return names


def _add_arch(groups: dict[str, list[str]], arch: str, codes: Sequence[str]) -> None:
    if arch in ("all", "all-major"):
        if codes:
            raise LeftToNvcc(option="-code")
        majors: dict[int, int] = {}
        for sm in sorted(ARCHITECTURES):
            majors.setdefault(sm if arch == "all" else sm // 10, sm)
        for sm in majors.values():
            groups[f"compute_{sm}"] = [f"sm_{sm}"]
        return
    if arch.startswith("sm_"):
        if codes:
            raise LeftToNvcc(option=f"-arch {arch}")
        _add_codes(groups, arch.replace("sm_", "compute_"), [arch], f"-arch {arch}")
        return
    # Each value of -code counts as an option of its own.
    for code in codes or [arch]:
        _add_codes(groups, arch, [code], f"-arch {arch}")


def _add_codes(
    groups: dict[str, list[str]], virtual: str, codes: Sequence[str], option: str
) -> None:
    """Add the architectures of one option."""
    group = groups.setdefault(virtual, [])
    added = []
    for code in codes:
        if code.startswith(NOT_LINKED):
            if code.partition("_")[2] not in NAMES:
                raise LeftToNvcc(option=option)
            continue
        name = _real_name(virtual, code)
        if name is None:
            raise LeftToNvcc(option=option)
        if name not in group and name not in added:
            added.append(name)
    group[:0] = added


def _real_name(virtual: str, code: str) -> str | None:
    """The name of real code for a virtual architecture; None if only nvcc knows it."""
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
    """Number and letter of an architecture: 90 and `a` of `sm_90a`; None for other names."""
    suffix = name.removeprefix(prefix)
    letter = suffix[-1:] if suffix.endswith(("a", "f")) else ""
    digits = suffix.removesuffix(letter)
    if not (name.startswith(prefix) and digits.isascii() and digits.isdigit()):
        return None
    return int(digits), letter
