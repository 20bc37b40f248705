"""The architectures of a step and their order, from nvcc's -arch, -code and -gencode.

Options name pairs of a virtual and a real architecture. The real ones of the virtual architecture
that is named first come first, and so on. Those of one virtual architecture are in reverse order of
the options, but a list in brackets or quotes keeps its order. PTX and LTO-IR are not part of the
result.
"""

from __future__ import annotations

from pylink.devicelink.request import LeftToNvcc
from pylink.facts.target import ARCHITECTURES, NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_ARCH = "sm_75"  # of a step without -arch, -code and -gencode
NOT_LINKED = ("compute_", "lto_")  # prefixes of PTX and of LTO-IR


def find_architectures(
    arch: str | None, codes: Sequence[str], specifications: Sequence[str]
) -> list[str]:
    """Return the architectures, such as `sm_90a`, by the values of -arch, -code and -gencode.

    LeftToNvcc if nvcc must decide or refuse the options.
    """
    if not (arch or codes or specifications):
        return [DEFAULT_ARCH]
    groups: dict[str, list[str]] = {}  # real architectures by virtual one, in order
    if arch is not None:
        _add_arch(groups, arch, codes)
    elif codes:
        raise LeftToNvcc(option="-code")
    for text in specifications:
        option = f"-gencode {text}"
        virtual, comma, code = text.replace(" ", "").partition(",code=")
        if not (comma and virtual.startswith("arch=compute_")):
            raise LeftToNvcc(option=option)
        is_list = code[:1] + code[-1:] in ("[]", '""')
        listed_codes = code[1:-1].split(",") if is_list else [code]
        _add_codes(groups, virtual.removeprefix("arch="), listed_codes, option)
    names = [name for group in groups.values() for name in group]
    other_names = {name for name in names if not name.endswith("f")}
    if any(name.removesuffix("f") in other_names for name in names if name.endswith("f")):
        raise LeftToNvcc(option="-gencode")  # nvcc refuses sm_100 with sm_100f
    if not names:  # nvcc's result then has no code, only registrations
        raise LeftToNvcc(option=f"-arch {arch}" if arch else f"-gencode {specifications[0]}")
    return names


def _add_arch(groups: dict[str, list[str]], arch: str, codes: Sequence[str]) -> None:
    """Add the architectures of -arch and -code to `groups`: the real ones by their virtual one."""
    if arch in ("all", "all-major"):
        if codes:
            raise LeftToNvcc(option="-code")
        # SM numbers, by themselves; for all-major the first of each major version, by that version.
        chosen: dict[int, int] = {}
        for sm in sorted(ARCHITECTURES):
            chosen.setdefault(sm if arch == "all" else sm // 10, sm)
        for sm in chosen.values():
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
    """Add the real architectures of one option for a virtual one, before those of earlier options.

    PTX and LTO-IR are skipped. LeftToNvcc, with the text `option`, for any that only nvcc can link
    or refuse.
    """
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
    """Return the name of the architecture `code` as it is linked for a virtual architecture.

    Code for compute_100f is sm_100f, also if `code` is sm_100. None if nvcc must decide or refuse.
    """
    virtual_parts, code_parts = (
        architecture_parts(virtual, "compute_"),
        architecture_parts(code, "sm_"),
    )
    if virtual_parts is None or code_parts is None:
        return None
    (from_sm, virtual_suffix), (to_sm, suffix) = virtual_parts, code_parts
    if virtual_suffix == "a" and (from_sm, "a") != (to_sm, suffix):
        return None
    if virtual_suffix == "f":
        row = ARCHITECTURES.get(from_sm)
        if row is None or to_sm not in row.related:
            return None
        suffix = suffix or "f"
    if to_sm < from_sm or virtual.partition("_")[2] not in NAMES or f"{to_sm}{suffix}" not in NAMES:
        return None
    return f"sm_{to_sm}{suffix}"


def architecture_parts(name: str, prefix: str) -> tuple[int, str] | None:
    """Return number and letter of an architecture: 90 and `a` for `sm_90a`; None for other names.

    `prefix` is the part before the number, such as `sm_`. The letter is empty if the name has none.
    """
    number = name.removeprefix(prefix)
    letter = number[-1:] if number.endswith(("a", "f")) else ""
    digits = number.removesuffix(letter)
    if not (name.startswith(prefix) and digits.isascii() and digits.isdigit()):
        return None
    return int(digits), letter
