"""The SARIF stream on standard error: the objects of the EDG front end, made valid JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from pylink.diagnostics import Diagnostic, Policy, Sink, note
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.record import Source
from pylink.diagnostics.severity import NAMES
from pylink.renderers.sarif import STREAM_LEVELS, SarifStream, file_uri, stream_result, to_json


def test_an_object_is_that_of_the_front_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unused = Diagnostic("malformed", source=Source("w2.cu", 1, 16))
    unused.template = 'variable "unused" was declared but never referenced'
    unused.number, unused.level = 177, 5
    assert to_json(stream_result(unused)) == (
        '{"ruleId":"EC177","level":"warning",'
        '"message":{"text":"variable \\"unused\\" was declared but never referenced"},'
        '"locations":[{"physicalLocation":{"artifactLocation":{"uri":"file://'
        f"{tmp_path}/w2.cu"
        '"},"region":{"startLine":1,"startColumn":16}}}]}'
    )
    assert to_json(stream_result(Diagnostic("suppression-hint"))) == (
        '{"ruleId":"EC3709","level":"remark","message":{"text":'
        '"The warnings can be suppressed with \\"-diag-suppress <warning-number>\\""}}'
    )


def streamed(*, numbers: bool = False) -> tuple[str, Sink]:
    stream = io.StringIO()
    sink = Sink(SarifStream(stream), policy=Policy(numbers=numbers))
    sink.report("stack-size", symbol="k", file="a.cubin", source=Source("k.cu", 3))
    sink.report(
        "multiple-definition",
        symbol="f",
        file="b.cubin",
        first="a.cubin",
        notes=[
            note("first-defined-here", symbol="f", file="a.cubin", source=Source("a.cu", 9, 2)),
            note("referenced-here", symbol="f", file="c.cubin"),
        ],
    )
    with pytest.raises(LinkError):
        sink.fatal("merge-failed")
    sink.close()
    return stream.getvalue(), sink


@pytest.mark.parametrize("numbers", [False, True])
def test_the_stream_in_brackets_is_an_array(numbers: bool) -> None:
    text, sink = streamed(numbers=numbers)
    results: list[dict[str, Any]] = json.loads(f"[{text}]")
    assert [result["ruleId"] for result in results] == [f"EC{d.number}" for d in sink.diagnostics]
    assert [result["level"] for result in results if result["ruleId"] != "EC3709"] == [
        "warning",
        "error",
        "catastrophe",
    ]
    assert text.count("\n") == 0


def test_notes_are_related_locations() -> None:
    result: Any = json.loads(f"[{streamed()[0]}]")[1]
    assert result["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": file_uri("b.cubin")}}}
    ]
    assert result["relatedLocations"] == [
        {
            "message": {"text": "a.cubin: 'f' is first defined here"},
            "physicalLocation": {
                "artifactLocation": {"uri": file_uri("a.cu")},
                "region": {"startLine": 9, "startColumn": 2},
            },
        },
        {
            "message": {"text": "c.cubin: 'f' is referenced here"},
            "physicalLocation": {"artifactLocation": {"uri": file_uri("c.cubin")}},
        },
    ]


def test_every_severity_has_a_level() -> None:
    assert set(STREAM_LEVELS) == set(NAMES)
    levels = {"remark", "warning", "error", "catastrophe", "internal_error"}
    assert set(STREAM_LEVELS.values()) == levels


def test_a_member_of_an_archive_is_in_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lib.a").touch()
    assert file_uri("lib.a:k.o") == (tmp_path / "lib.a").as_uri()
    assert file_uri("lib.a:inner.a:k.o") == (tmp_path / "lib.a").as_uri()
    Path("lib.a:k.o").touch()
    assert file_uri("lib.a:k.o") == f"{(tmp_path / 'lib.a').as_uri()}%3Ak.o"
    assert file_uri("none.a:k.o").endswith("/none.a%3Ak.o")


def test_text_of_any_kind_stays_json() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8")
    symbol = 'q"\\\n\t\x00\x1b\x7fé漢\U0001f600\udcff\ud800'
    Sink(SarifStream(stream)).report("undefined-reference", symbol=symbol, file="a")
    result: Any = json.loads(raw.getvalue().decode("utf-8"))
    assert 'q"\\\n\t\x00\x1b\x7fé漢\U0001f600' in result["message"]["text"]


def test_bytes_that_are_no_utf8_are_shown_as_escapes() -> None:
    undefined = Diagnostic("undefined-reference", {"symbol": "f\udcff", "file": "a"})
    assert stream_result(undefined)["message"] == {  # type: ignore[index, call-overload] # an object
        "text": "Undefined reference to 'f\\xff' in 'a'"
    }


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/lib/x.cubin", "file:///lib/x.cubin"),
        ("/a b/c#d?e%f.cu", "file:///a%20b/c%23d%3Fe%25f.cu"),
        ("/é.cu", "file:///%C3%A9.cu"),
        ("/n\udcff.cu", "file:///n%FF.cu"),
        ("/a/../b.cu", "file:///b.cu"),
    ],
)
def test_uris_are_absolute_and_encoded(path: str, uri: str) -> None:
    assert file_uri(path) == uri
