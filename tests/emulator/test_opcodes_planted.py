"""Faults planted in the opcodes of the interpreter: the comparison with other values finds them."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from emulator import semantics
from emulator.opcodes import ROWS
from emulator.semantics.table import OPCODES
from emulator.test_opcodes import mismatch

# Module, what is there, what is planted instead.
MUTANTS = [
    ("integer", "put(f, x(f) + y(f) + z(f))", "put(f, x(f) + y(f) - z(f))"),
    ("integer", "value >= limit", "value > limit"),
    ("integer", 'int(signs == "-")', "0"),
    ("integer", "result = result + carry(f)", "result = result"),
    ("integer", "x(f) * y(f) + z(f))", "x(f) * y(f) | z(f))"),
    ("integer", "carry = total < product", "carry = total <= product"),
    (
        "integer",
        "x.view(np.int32).astype(np.int64) * y.view(np.int32)",
        "x.astype(np.int64) * y.view(np.int32)",
    ),
    ("integer", "write_high(f, high_word(total))", "write_high(f, low_word(total))"),
    ("integer", "whole = whole << np.uint64(shift)", "whole = whole << np.uint64(shift + 1)"),
    ("bits", "0x96: lambda a, b, c: a ^ b ^ c", "0x96: lambda a, b, c: a ^ b | c"),
    ("bits", "left = a if index & 4 else ~a", "left = a if index & 2 else ~a"),
    ("bits", "flag | more(f))", "flag & more(f))"),
    ("bits", "index = x(f) * 4 + y(f) * 2 + z(f)", "index = x(f) * 2 + y(f) * 4 + z(f)"),
    ("bits", "np.minimum(shift, bits)", "shift & (bits - 1)"),
    ("bits", "shift & (bits - 1) if wrap", "np.minimum(shift, bits) if wrap"),
    ("bits", "np.where(shift > _63, np.uint64(0), result)", "result"),
    ("bits", "(upper(f).view(np.int32) >> np.int32(fixed)).view(np.uint32)", "upper(f) >> count"),
    ("integer", '"LE": np.less_equal', '"LE": np.less'),
    ("integer", '"GE": np.greater_equal', '"GE": np.greater'),
    ("integer", '{"LE": np.less, "GE": np.greater}.get', "{}.get"),
    ("integer", "opposite = combine(~found, third)", "opposite = ~combine(found, third)"),
    ("integer", '"XOR": np.logical_xor', '"XOR": np.logical_or'),
    ("integer", "found = (p == q) & low", "found = (p == q) | low"),
    (
        "packed",
        "np.minimum(left, right), np.maximum(left, right)",
        "np.maximum(left, right), np.minimum(left, right)",
    ),
    ("packed", "(16, True): np.int16", "(16, True): np.uint16"),
    ("packed", "np.maximum(value.view(kind), kind(0))", "np.minimum(value.view(kind), kind(0))"),
    ("bits", "value = np.where(value >> 31, ~value, value)", "value = value"),
    ("bits", "31 - place if shift else place", "place"),
    (
        "bits",
        'bitorder="little")\n        put(f, np.packbits(bits)',
        'bitorder="big")\n        put(f, np.packbits(bits)',
    ),
    ("bits", "np.where(nibble > 7, sign, byte)", "byte"),
    ("bits", "sign=not zeros", "sign=zeros"),
    ("packed", "np.abs(p - q)", "(p - q)"),
    ("packed", "np.minimum(p, q) for p, q", "np.minimum(q, p) + 1 for p, q"),
    (
        "rounding",
        "moved = np.where(away, bits + 1, bits - 1)",
        "moved = np.where(away, bits - 1, bits + 1)",
    ),
    ("rounding", "lost & (bits & 1 == 0)", "lost & (bits & 1 == 1)"),
    ("rounding", "wrong = np.abs(back) > np.abs(exact)", "wrong = np.abs(back) < np.abs(exact)"),
    ("rounding", "wrong = back < exact", "wrong = back > exact"),
    ("rounding", "NAN32 = np.uint32(0x7FFFFFFF)", "NAN32 = np.uint32(0xFFC00000)"),
    ("rounding", "float(_FMA(x, y, z))", "x * y + z"),
    (
        "rounding",
        "Fraction(x) * Fraction(y) + Fraction(z), direction",
        "Fraction(x) * Fraction(y), direction",
    ),
    (
        "single",
        "rounding.fma32(x(f), y(f), z(f), direction)",
        "rounding.add32(x(f) * y(f), z(f), direction)",
    ),
    ("single", '"GEU": lambda x, y: ~(x < y)', '"GEU": lambda x, y: x >= y'),
    ("single", '"NE": lambda x, y: (x != y) & ~_unordered(x, y)', '"NE": lambda x, y: x != y'),
    ("half", "return _sum(x * y, z)", "return x * y + z"),
    ("half", "(bits >> 16 & 1)) >> 16", "0) >> 16"),
    ("half", '"H1_H1": (1, 1)', '"H1_H1": (0, 0)'),
    (
        "half",
        "put(f, low | high << 16)\n\n        return run\n\n    return build",
        "put(f, high | low << 16)\n\n        return run\n\n    return build",
    ),
    ("convert", "np.where(bad, np.uint32(for_nan)", "np.where(bad, np.uint32(1)"),
    ("convert", '"FLOOR": np.floor', '"FLOOR": np.ceil'),
    ("convert", "half(low(f)) | half(high(f)) << 16", "half(high(f)) | half(low(f)) << 16"),
    (
        "convert",
        "high(f).view(np.int32).astype(np.float64) * scale",
        "high(f).astype(np.float64) * scale",
    ),
    ("double", "return lambda x, y: x * y", "return lambda x, y: x + y"),
    ("move", "np.where(choice(f), x(f), y(f))", "np.where(choice(f), y(f), x(f))"),
]


def planted(module: str, before: str, after: str) -> dict[str, Any]:
    """The table of opcodes with one fault in the text of a module."""
    folder = Path(semantics.__path__[0])
    text = (folder / f"{module}.py").read_text()
    assert before in text, before
    changed: dict[str, types.ModuleType] = {}
    table: dict[str, Any] = dict(OPCODES)
    # Modules that use the changed one are made again with it.
    for name in (
        "rounding",
        "integer",
        "bits",
        "packed",
        "single",
        "double",
        "half",
        "convert",
        "move",
    ):
        source = (folder / f"{name}.py").read_text()
        if name == module:
            source = source.replace(before, after)
        elif not any(
            f"semantics.{other} import" in source
            or (other == "rounding" and "import rounding" in source)
            for other in changed
        ):
            continue
        made = types.ModuleType(f"emulator.semantics.{name}")
        made.__dict__["__file__"] = f"{name}.py"
        source = _with(source, changed)
        made.__dict__["PLANTED"] = changed
        exec(compile(source, f"{name}.py", "exec"), made.__dict__)
        changed[name] = made
        table |= made.__dict__.get("OPCODES", {})
    return table


def _with(source: str, changed: dict[str, types.ModuleType]) -> str:
    """The text with its imports of changed modules taken from `PLANTED`."""
    for name in changed:
        if name == "rounding":
            source = source.replace(
                "from emulator.semantics import rounding\n", "rounding = PLANTED['rounding']\n"
            )
        start = source.find(f"from emulator.semantics.{name} import ")
        while start >= 0:
            end = source.index("\n", start)
            if source[end - 1] == "(":
                end = source.index(")", end) + 1
            names = source[start:end].partition(" import ")[2].strip("()").replace("\n", " ")
            lines = "".join(
                f"{word.strip()} = PLANTED['{name}'].{word.strip()}\n"
                for word in names.split(",")
                if word.strip()
            )
            source = source[:start] + lines + source[end:]
            start = source.find(f"from emulator.semantics.{name} import ")
    return source


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant[0]}-{mutant[2][:30]}")
def test_planted_faults_are_found(mutant: tuple[str, str, str]) -> None:
    table = planted(*mutant)
    opcodes = {name for name, builder in table.items() if builder is not OPCODES.get(name)}
    rows = [text for text in ROWS if text.split()[0].split(".")[0] in opcodes]
    assert rows
    assert any(mismatch(text, table) for text in rows)
