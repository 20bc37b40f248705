"""Files of remarks and LLVM's own tools: each reads what the other writes, and refuses the same.

Container version 0 goes with LLVM 19, version 1 with LLVM 22.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.llvm import OPT_VIEWER, run_llvm
from helpers.remark_samples import SAMPLE, TEXT, any_remark, write_and_read
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pylink.remarks import Remark, read_remarks
from pylink.remarks.bitread import read_bitstream
from pylink.remarks.container import LLVM_19, LLVM_22
from pylink.remarks.scalars import scalar
from pylink.remarks.yamlread import read_yaml

RELEASES = pytest.mark.parametrize(("release", "version"), [("19", LLVM_19), ("22", LLVM_22)])

tool_runs = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])

# LLVM's parser keeps no copy of a block literal and reads freed memory, as often as not unchanged.
ONE_LINE = TEXT.map(lambda text: text.replace("\n", " "))

# YAML has hotness of 32 bits.
REMARKS = [*SAMPLE[:5], Remark(6, "p", "n", "it's a name", file="dir/x, y.cu", hotness=1 << 31)]


def to_bitstream(release: str, data: bytes) -> bytes:
    status, out, err = run_llvm("llvm-remarkutil", release, "yaml2bitstream", "-", data=data)
    assert status == 0, err
    return out


def to_yaml(release: str, data: bytes) -> bytes:
    status, out, err = run_llvm("llvm-remarkutil", release, "bitstream2yaml", "-", data=data)
    assert status == 0, err
    return out


def is_exact(text: str, indent: int = 6) -> bool:
    """Whether LLVM's parser, too, reads a string right: it takes double quotes for text."""
    readable = all(c.isprintable() or c in "\t\n" for c in text)  # others appear as escapes
    return readable and not scalar(text, indent).startswith('"')


# Of a key LLVM's parser takes no quotes off.
PRINTABLE = st.characters(exclude_categories=["C", "Z"]) | st.sampled_from(
    "'\"\\:#-?,[]{}&*!|>%@`~= "
)
LINE = st.text(PRINTABLE, max_size=9)
EXACT_LINE = LINE.filter(lambda text: is_exact(text) and is_exact(text, 0))
EXACT_KEY = LINE.filter(lambda text: text == scalar(text))


@RELEASES
def test_llvm_makes_our_bitstream_of_our_yaml(tmp_path: Path, release: str, version: int) -> None:
    ours = write_and_read(tmp_path, REMARKS, "bitstream", version)
    assert to_bitstream(release, write_and_read(tmp_path, REMARKS, "yaml")) == ours


@RELEASES
def test_llvm_makes_our_yaml_of_our_bitstream(tmp_path: Path, release: str, version: int) -> None:
    # LLVM's writer doubles an apostrophe, which its own parser does not undo.
    expected = write_and_read(tmp_path, REMARKS, "yaml").replace(b"it's a name", b"'it''s a name'")
    assert to_yaml(release, write_and_read(tmp_path, REMARKS, "bitstream", version)) == expected


EXACT = [
    "it's",
    "a: b #c",
    "[a]",
    "",
    " ",
    "-",
    "512",
    'say "x"',
    "back\\slash",
    "tab\there",
    "a\nb",
    "a\n\n  b\n",
    "a\n\n\n",
    "a\n \nb ",
    "don't\nstop",
    "naïve ☃ 𝄞",
]


@RELEASES
def test_llvm_reads_these_strings(tmp_path: Path, release: str, version: int) -> None:
    for text in EXACT:
        assert is_exact(text)
        remark = Remark(1, "p", "n", "f").arg("Key", text)
        ours = write_and_read(tmp_path, [remark], "bitstream", version)
        assert to_bitstream(release, write_and_read(tmp_path, [remark], "yaml")) == ours


@RELEASES
@given(remarks=st.lists(any_remark(EXACT_LINE, EXACT_KEY), min_size=1, max_size=20))
@tool_runs
def test_llvm_reads_every_exact_string(
    tmp_path: Path, release: str, version: int, remarks: list[Remark]
) -> None:
    ours = write_and_read(tmp_path, remarks, "bitstream", version)
    assert to_bitstream(release, write_and_read(tmp_path, remarks, "yaml")) == ours


@RELEASES
@given(remarks=st.lists(any_remark(ONE_LINE), min_size=1, max_size=20))
@tool_runs
def test_llvm_takes_any_yaml_and_any_bitstream_of_ours(
    tmp_path: Path, release: str, version: int, remarks: list[Remark]
) -> None:
    made = to_bitstream(release, write_and_read(tmp_path, remarks, "yaml"))
    assert len(list(read_bitstream(made, "f"))) == len(remarks)
    to_yaml(release, write_and_read(tmp_path, remarks, "bitstream", version))


@RELEASES
@given(remarks=st.lists(any_remark(st.text(min_size=1, max_size=9)), min_size=1, max_size=20))
@tool_runs
def test_we_read_what_llvm_writes(
    tmp_path: Path, release: str, version: int, remarks: list[Remark]
) -> None:
    data = write_and_read(tmp_path, remarks, "bitstream", version)
    made = to_yaml(release, data)
    # LLVM leaves some characters as they are that YAML does not allow.
    assume(not re.search("[\0-\x09\x0b-\x1f\x7f\x85\ufeff]", made.decode()))
    assert [remark.args for remark in read_yaml(made, "f")] == [
        remark.args for remark in read_bitstream(data, "f")
    ]


@RELEASES
@pytest.mark.parametrize("format", ["yaml", "bitstream"])
def test_llvm_counts_them(tmp_path: Path, release: str, version: int, format: str) -> None:
    write_and_read(tmp_path, SAMPLE if format == "bitstream" else REMARKS, format, version)
    words = ["count", "--count-by=remark-name", "--group-by=total"]
    words.append(f"--parser={format}")  # 19 does not find it out
    status, out, err = run_llvm("llvm-remarkutil", release, *words, str(tmp_path / "remarks.out"))
    assert (status, err) == (0, "")
    assert out.decode().split() == ["Total,Count", f"Total,{len(SAMPLE)}"]


@RELEASES
def test_llvm_adds_up_arguments(tmp_path: Path, release: str, version: int) -> None:
    write_and_read(tmp_path, SAMPLE, "bitstream", version)
    status, out, err = run_llvm(
        "llvm-remarkutil",
        release,
        "count",
        "--parser=bitstream",
        "--count-by=arg",
        "--args=Bytes",
        "--group-by=function",
        str(tmp_path / "remarks.out"),
    )
    assert (status, err) == (0, "")
    assert ".nv.merc.text.k,512" in out.decode()


@pytest.mark.parametrize("release", ["19", "22"])
@pytest.mark.parametrize("version", [LLVM_19, LLVM_22])
def test_the_bits_are_in_order(tmp_path: Path, release: str, version: int) -> None:
    write_and_read(tmp_path, SAMPLE, "bitstream", version)
    path = str(tmp_path / "remarks.out")
    status, out, err = run_llvm("llvm-bcanalyzer", release, "--dump", path)
    assert (status, err) == (0, "")
    text = out.decode()
    assert text.count("<Remark header ") == len(SAMPLE)
    assert text.count("<String table ") == 1
    assert "Unknown" not in text


def test_opt_stats_counts_what_has_a_place(tmp_path: Path) -> None:
    script = OPT_VIEWER.with_name("opt-stats.py")
    if not script.is_file() or find_spec("yaml") is None:
        pytest.skip("no opt-stats (apt install llvm-22-tools, pip install PyYAML)")
    write_and_read(tmp_path, SAMPLE, "yaml")

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(script), "-j1", "-n", str(tmp_path / "remarks.out")],
            capture_output=True,
            text=True,
            check=False,
        )

    done = run()
    assert done.returncode == 0, done.stderr
    placed = sum(remark.file is not None for remark in SAMPLE)
    assert f"Total number of remarks {placed:>11}" in done.stdout
    # The control: the script does look.
    (tmp_path / "remarks.out").write_text("--- !Passed\nPass: [\n")
    assert run().returncode != 0


# Controls: each gate refuses a broken file, and so do we.

BROKEN_YAML = [
    b"",
    b"# nothing\n",
    b"--- !Guessed\nPass: p\nName: n\nFunction: f\n",
    b"--- !Passed\nPass: p\nName: n\n",
    b"--- !Passed\nPass: p\nName: n\nFunction: f\nHotness: 4294967296\n",
    b"--- !Passed\nPass: p\nName: n\nFunction: f\nArgs:\n  - A: b\n    C: d\n",
    b"--- !Passed\nPass: p\nName: n\nFunction: f\nColour: red\n",
]


@pytest.mark.parametrize("release", ["19", "22"])
@pytest.mark.parametrize("data", BROKEN_YAML)
def test_broken_yaml_is_refused(release: str, data: bytes) -> None:
    status, _, err = run_llvm("llvm-remarkutil", release, "yaml2bitstream", "-", data=data)
    assert status != 0
    assert err
    with pytest.raises(ValueError, match=r"^f: "):
        list(read_yaml(data, "f"))


@RELEASES
@pytest.mark.parametrize("fault", ["magic", "type", "cut", "version", "no remarks"])
def test_a_broken_bitstream_is_refused(
    tmp_path: Path, release: str, version: int, fault: str
) -> None:
    data = bytearray(write_and_read(tmp_path, SAMPLE, "bitstream", version))
    info = data.index(b"\x21\x0c\0\0")  # the head of the meta block
    if fault == "magic":
        data[0] ^= 1
    elif fault == "type":
        data[info + 12] ^= 1 << 3
    elif fault == "cut":
        del data[-20:]
    elif fault == "version":
        other = LLVM_22 if version == LLVM_19 else LLVM_19
        data = bytearray(write_and_read(tmp_path, SAMPLE, "bitstream", other))
    else:
        size = int.from_bytes(data[info + 4 : info + 8], "little")
        del data[info + 8 + 4 * size :]
    path = tmp_path / "broken"
    path.write_bytes(data)
    status, _, err = run_llvm("llvm-remarkutil", release, "bitstream2yaml", str(path))
    assert status != 0
    assert err
    if fault != "version":  # we read both
        with pytest.raises(ValueError, match="broken: "):
            list(read_remarks(path))


@pytest.mark.parametrize("release", ["19", "22"])
def test_bits_out_of_order_are_refused(tmp_path: Path, release: str) -> None:
    data = write_and_read(tmp_path, SAMPLE, "bitstream")
    path = tmp_path / "broken"
    path.write_bytes(data[:-6])
    status, _, err = run_llvm("llvm-bcanalyzer", release, "--dump", str(path))
    assert status != 0
    assert err
