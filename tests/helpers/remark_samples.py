"""Remarks to write and read: samples of each kind, random ones, and a reference of bitstreams."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from pylink.facts.bitstreamnumbers import VBR
from pylink.remarks import (
    ANALYSIS,
    ANALYSIS_ALIASING,
    ANALYSIS_FP_COMMUTE,
    FAILURE,
    MISSED,
    PASSED,
    Remark,
    write_remarks,
)
from pylink.remarks.container import (
    ARGUMENT,
    ARGUMENT_WITH_LOCATION,
    HEADER,
    HOTNESS,
    LLVM_19,
    LOCATION,
    RECORDS,
    REMARK,
    BitWriter,
    encode_block,
    encode_head,
    encode_string_table,
    encode_tail,
)

SAMPLE = [
    Remark(PASSED, "merc-dedup", "SectionFolded", ".nv.merc.text.k", file="a.cubin", hotness=512)
    .text("folded ")
    .arg("Bytes", 512)
    .text(" bytes into ")
    .arg("Reference", "b.cubin", file="b.cubin", line=7, column=3),
    Remark(MISSED, "merc-dedup", "SectionRejected", ".nv.merc.text.k", file="k.cu", line=12),
    Remark(ANALYSIS, "regcount", "Raised", "_Z1kv", hotness=0).arg("Registers", 40),
    Remark(ANALYSIS_FP_COMMUTE, "p", "n", "f").arg("Flag", True).arg("Ratio", 1.5),
    Remark(ANALYSIS_ALIASING, "p", "n", "f", file="", line=4294967295, column=4294967295),
    Remark(FAILURE, "p", "n", "it's a name", file="dir/x, y.cu", hotness=18446744073709551615),
]

YAML = """\
--- !Passed
Pass:            merc-dedup
Name:            SectionFolded
DebugLoc:        { File: a.cubin, Line: 0, Column: 0 }
Function:        .nv.merc.text.k
Hotness:         512
Args:
  - String:          'folded '
  - Bytes:           '512'
  - String:          ' bytes into '
  - Reference:       b.cubin
    DebugLoc:        { File: b.cubin, Line: 7, Column: 3 }
...
--- !Missed
Pass:            merc-dedup
Name:            SectionRejected
DebugLoc:        { File: k.cu, Line: 12, Column: 0 }
Function:        .nv.merc.text.k
...
--- !Analysis
Pass:            regcount
Name:            Raised
Function:        _Z1kv
Hotness:         0
Args:
  - Registers:       '40'
...
--- !AnalysisFPCommute
Pass:            p
Name:            n
Function:        f
Args:
  - Flag:            'true'
  - Ratio:           '1.5'
...
--- !AnalysisAliasing
Pass:            p
Name:            n
DebugLoc:        { File: '', Line: 4294967295, Column: 4294967295 }
Function:        f
...
--- !Failure
Pass:            p
Name:            n
DebugLoc:        { File: 'dir/x, y.cu', Line: 0, Column: 0 }
Function:        it's a name
Hotness:         4294967295
...
"""

# Code and operands.
Record = tuple[int, tuple[int, ...]]

# Characters that YAML, or a reader of it, may treat in a special way.
AWKWARD = st.sampled_from("'\"\\:#-?,[]{}&*!|>%@`~= \t\n\r\0\x01\x7f\x85\u2028\ufeffé☃𝄞._^0x1yn")
TEXT = st.one_of(
    st.text(AWKWARD, max_size=8),
    st.text(max_size=12),
    st.binary(max_size=6).map(lambda data: data.decode("utf-8", "surrogateescape")),
)
NUMBER = st.integers(0, 0xFFFFFFFF)


@st.composite
def any_remark(
    draw: st.DrawFn,
    text: st.SearchStrategy[str] = TEXT,
    keys: st.SearchStrategy[str] | None = None,
) -> Remark:
    """Return a random remark; `keys` are those of arguments (default: any text)."""
    name = text.filter(bool)
    key_names = name if keys is None else keys.filter(bool)
    place = st.one_of(st.just((None, 0, 0)), st.tuples(text, NUMBER, NUMBER))
    file, line, column = draw(place)
    args = draw(st.lists(st.tuples(key_names, text, place), max_size=3))
    return Remark(
        draw(st.integers(PASSED, FAILURE)),
        draw(name),
        draw(name),
        draw(name),
        file=file,
        line=line,
        column=column,
        hotness=draw(st.one_of(st.none(), NUMBER)),
        args=[(key, value, *location) for key, value, location in args if key != "DebugLoc"],
    )


def write_and_read(folder: Path, remarks: list[Remark], format: str, version: int = 1) -> bytes:
    """Write remarks to a file in a format and version of it, and return its bytes."""
    path = folder / "remarks.out"
    write_remarks(path, remarks, format=format, version=version)
    return path.read_bytes()


def bitstream_reference(remarks: list[Remark], version: int) -> bytes:
    """Return a bitstream, written bit by bit from the table of abbreviations."""
    strings: dict[str, int] = {}

    def number(text: str) -> int:
        """Return the number of a string in the string table, to which it is added if it is new."""
        return strings.setdefault(text, len(strings))

    blocks = []
    for remark in remarks:
        pass_name, name, function = map(number, (remark.pass_name, remark.name, remark.function))
        records: list[Record] = [(HEADER, (remark.kind, name, pass_name, function))]
        if remark.file is not None:
            records.append((LOCATION, (number(remark.file), remark.line, remark.column)))
        if remark.hotness is not None:
            records.append((HOTNESS, (remark.hotness,)))
        for key, value, file, line, column in remark.args:
            texts = number(key), number(value)
            if file is None:
                records.append((ARGUMENT, texts))
            else:
                records.append((ARGUMENT_WITH_LOCATION, (*texts, number(file), line, column)))
        blocks.append(encode_block(REMARK, _contents(records)))
    table = encode_string_table(strings)
    if version == LLVM_19:
        return encode_head(version, table) + b"".join(blocks)
    return encode_head(version, None) + b"".join(blocks) + encode_tail(table)


def _contents(records: list[Record]) -> BitWriter:
    """Return the bits of a remark's block."""
    _, abbreviations = RECORDS[REMARK]
    places = {code: 4 + place for place, code in enumerate(abbreviations)}
    bits = BitWriter()
    for code, values in records:
        bits.write_fixed(places[code], 4)
        for value, (encoding, width) in zip(values, abbreviations[code][1], strict=True):
            (bits.write_vbr if encoding == VBR else bits.write_fixed)(value, width)
    return bits
