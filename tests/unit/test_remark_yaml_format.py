"""Remarks as YAML: layout, quoting, and what the reader takes and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from helpers.remark_samples import SAMPLE, TEXT, YAML, any_remark, write_and_read
from hypothesis import given

from pylink.remarks import PASSED, MalformedRemarks, Remark, read_remarks
from pylink.remarks.scalars import scalar
from pylink.remarks.yamlfile import document
from pylink.remarks.yamlread import read_yaml

LONG = "/build/deep/in/a/tree/of/folders/that/has/no/end/in/sight/kernel.cu"


def test_the_layout_is_that_of_llvm(tmp_path: Path) -> None:
    assert write_and_read(tmp_path, SAMPLE, "yaml").decode() == YAML


def test_a_long_place_goes_on_in_the_next_line() -> None:
    remark = Remark(PASSED, "p", "n", "f", file=LONG).arg("A", "b", file=LONG, line=1)
    assert document(remark) == (
        "--- !Passed\n"
        "Pass:            p\n"
        "Name:            n\n"
        f"DebugLoc:        {{ File: '{LONG}', \n"
        "                   Line: 0, Column: 0 }\n"
        "Function:        f\n"
        "Args:\n"
        "  - A:               b\n"
        f"    DebugLoc:        {{ File: '{LONG}', \n"
        "                       Line: 1, Column: 0 }\n"
        "...\n"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # Plain where nothing speaks against it.
        ("plain", "plain"),
        ("two words", "two words"),
        ("_Z4stepPK8Particle", "_Z4stepPK8Particle"),
        (".nv.merc.text.k", ".nv.merc.text.k"),
        ("a,b", "a,b"),
        ("it's", "it's"),
        ("naïve", "naïve"),
        # Single quotes for what plain text cannot hold, and what would be another type.
        ("", "''"),
        (" a", "' a'"),
        ("a ", "'a '"),
        ("a: b", "'a: b'"),
        ("a #b", "'a #b'"),
        ("-a", "'-a'"),
        ("{a}", "'{a}'"),
        ('say "x"', "'say \"x\"'"),
        ("a/b", "'a/b'"),
        ("back\\slash", "'back\\slash'"),
        ("a\tb", "'a\tb'"),
        ("512", "'512'"),
        ("1.5", "'1.5'"),
        ("0x1F", "'0x1F'"),
        ("1e5", "'1e5'"),
        ("+7", "'+7'"),
        (".inf", "'.inf'"),
        ("true", "'true'"),
        ("yes", "'yes'"),
        ("null", "'null'"),
        ("~", "'~'"),
        ("2026-01-01", "'2026-01-01'"),
        # A block literal for newlines.
        ("a\nb", "|-\n      a\n      b"),
        ("a\n\nb", "|-\n      a\n\n      b"),
        ("a\nb\n", "|\n      a\n      b"),
        ("a\n\n", "|+\n      a\n"),
        ("it's\nso", "|-\n      it's\n      so"),
        # Double quotes for the rest.
        ("it's: so", '"it\'s: so"'),
        ("'a'", "\"'a'\""),
        ("Split '", '"Split \'"'),
        ("\na", '"\\na"'),
        ("a\rb", '"a\\x0Db"'),
        ('"\x01', '"\\"\\x01"'),
        ("a\u2028b", '"a\\u2028b"'),
        ("\ufeff", '"\\uFEFF"'),
        # Bytes that are no UTF-8 show as text.
        (b"a\xffb".decode("utf-8", "surrogateescape"), "'a\\xffb'"),
    ],
)
def test_a_string_is_quoted_so_that_every_reader_gets_it(text: str, shown: str) -> None:
    assert scalar(text, 6) == shown


def test_a_file_name_has_no_room_for_a_block_literal() -> None:
    assert scalar("it's: so") == '"it\'s: so"'
    assert scalar("a,b") == "'a,b'"  # a comma ends plain text in braces


def expected(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@given(TEXT)
def test_a_yaml_loader_reads_each_string_back(text: str) -> None:
    for shown in (f"- k: {scalar(text, 6)}\n", f"{{ k: {scalar(text)} }}\n"):
        value = yaml.safe_load(shown)
        value = value[0]["k"] if isinstance(value, list) else value["k"]
        assert value == expected(text)


@given(any_remark())
def test_what_is_written_is_read(remark: Remark) -> None:
    (read,) = read_yaml(document(remark).encode(), "f")
    assert [arg[:2] for arg in read.args] == [
        (expected(key), expected(value)) for key, value, *_ in remark.args
    ]
    assert (read.kind, read.line, read.column) == (remark.kind, remark.line, remark.column)
    assert read.hotness == remark.hotness
    assert read.function == expected(remark.function)
    assert read.file == (None if remark.file is None else expected(remark.file))


def test_the_sample_is_read(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(YAML)
    read = list(read_remarks(tmp_path / "r.yaml"))
    assert read[:5] == SAMPLE[:5]
    assert read[5].hotness == 0xFFFFFFFF  # more than YAML may say


def test_an_empty_file_has_no_remarks(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").touch()
    assert list(read_remarks(tmp_path / "r.yaml")) == []


BASE = "--- !Passed\nPass: p\nName: n\nFunction: f\n"
PLACE = "DebugLoc: { File: a, Line: 1, Column: 2 }\n"


@pytest.mark.parametrize(
    "text",
    [
        BASE,
        BASE + "...\n",
        "\ufeff" + BASE,
        BASE.replace("\n", "\r\n"),
        "# comment\n" + BASE,
        "%YAML 1.1\n" + BASE,
        "--- !Passed { Function: f, Name: n, Pass: p }\n",
        BASE + "Pass: p\n",
        BASE + "Args: []\n",
        BASE + "Hotness: '4294967295'\n",
        BASE + PLACE,
        BASE + "DebugLoc:\n  Column: 2\n  Line: 001\n  File: a\n",
        BASE + "Args:\n  - A: 5\n  - B: -7\n  - C: ~\n  - D: true\n  - '': ''\n",
        BASE + "Args:\n  - A: |\n      x\n",
        "--- !Passed\nPass: &a p\nName: !!str n\nFunction: f\n",
    ],
)
def test_the_grammar_of_llvm_is_read(text: str) -> None:
    (remark,) = read_yaml(text.encode(), "f")
    assert (remark.pass_name, remark.name, remark.function) == ("p", "n", "f")


def test_the_last_of_a_key_counts_and_any_scalar_is_a_string() -> None:
    arguments = "Args:\n  - B: 1\nArgs:\n  - A: -7\n"
    (remark,) = read_yaml((BASE + "Pass: q\n" + arguments).encode(), "f")
    assert remark.pass_name == "q"
    assert remark.args == [("A", "-7", None, 0, 0)]


MISSING = "Pass, Name or Function missing"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# nothing\n", "line 1: there are no remarks"),
        (BASE.replace(" !Passed", ""), "line 2: expected a remark tag"),
        (BASE.replace("Passed", "Guessed"), "line 1: expected a remark tag"),
        ("--- !Passed\n- a\n", "line 1: document root is not of mapping type"),
        ("--- !Passed\ntext\n", "line 1: document root is not of mapping type"),
        (BASE + "Colour: red\n", "line 5: unknown key 'Colour'"),
        ("--- !Passed\nPass: p\nName: n\n", f"line 1: {MISSING}"),
        (BASE.replace("Name: n", "Name: ''"), f"line 1: {MISSING}"),
        (BASE + "--- !Missed\nPass: p\n", f"line 5: {MISSING}"),
        (BASE.replace("Name: n", "Name:"), "line 3: expected a value of scalar type"),
        (BASE.replace("Name: n", "Name: [n]"), "line 3: expected a value of scalar type"),
        (BASE + "Args:\n", "line 5: wrong value type for key 'Args'"),
        (BASE + "Args: {}\n", "line 5: wrong value type for key 'Args'"),
        (BASE + "Args:\n  - a\n", "line 6: expected a value of mapping type"),
        (BASE + "Args:\n  - {}\n", "line 6: argument key is missing"),
        (BASE + f"Args:\n  - {PLACE}", "line 6: argument key is missing"),
        (
            BASE + "Args:\n  - A: b\n    C: d\n",
            "line 7: only one string entry is allowed per argument",
        ),
        (
            BASE + f"Args:\n  - A: b\n    {PLACE}    {PLACE}",
            "line 8: only one DebugLoc entry is allowed per argument",
        ),
        (BASE + "DebugLoc: { File: a, Line: 1 }\n", "line 5: DebugLoc node incomplete"),
        (
            BASE + "DebugLoc: { File: a, Line: 1, Column: 1, Row: 2 }\n",
            "line 5: unknown entry in DebugLoc map: 'Row'",
        ),
        (BASE + "DebugLoc: here\n", "line 5: expected a value of mapping type"),
        (BASE + "Hotness: 4294967296\n", "line 5: expected a value of integer type"),
        (BASE + "Hotness: -1\n", "line 5: expected a value of integer type"),
        (BASE + "Hotness: 0x10\n", "line 5: expected a value of integer type"),
        (BASE + f"Hotness: {'9' * 5000}\n", "line 5: expected a value of integer type"),
        (BASE + "? [a]\n: b\n", "line 5: key is not a string"),
        ("--- !Passed\nPass: &a p\nName: *a\n", "line 3: an alias is not a value of a remark"),
        (BASE + "Args: [[[[[[a]]]]]]\n", "line 5: values are nested too deeply"),
        # Here PyYAML may stop before pylink does, in words of its own.
        (BASE + f"Args: {'[' * 50_000}\n", "line 5: "),
        (BASE + "Args: [\n", "line 6: "),
        (BASE + "Args:\n  - A: 'x\0y'\n", "byte 0x37: "),
    ],
)
def test_anything_else_is_refused_by_line_and_reason(text: str, reason: str) -> None:
    with pytest.raises(MalformedRemarks) as caught:
        list(read_yaml(text.encode(), "bad.yaml"))
    assert str(caught.value).startswith(f"bad.yaml: {reason}")


def test_remarks_before_a_damaged_one_are_read() -> None:
    remarks = read_yaml((BASE + "--- !Passed\n").encode(), "f")
    assert next(remarks).name == "n"
    with pytest.raises(MalformedRemarks):
        next(remarks)


@pytest.mark.parametrize("cut", range(1, len(YAML), 7))
def test_a_cut_file_gives_remarks_or_an_error(cut: int) -> None:
    found = read_or_refuse(YAML[:cut])
    if isinstance(found, str):
        assert found.startswith("cut.yaml: ")
    else:
        assert found[:-1] == SAMPLE[: len(found) - 1]


def read_or_refuse(text: str) -> list[Remark] | str:
    try:
        return list(read_yaml(text.encode(), "cut.yaml"))
    except MalformedRemarks as error:
        return str(error)
