"""The SARIF document: valid by the OASIS schema, complete by what code scanning asks for.

Tests that need the schema, jsonschema or sarif-tools are skipped where these are absent.
"""

from __future__ import annotations

import copy
import csv
import importlib.util
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import sarif

from pylink.diagnostics import Diagnostic, Sink, note
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.record import CHILD, DETAIL, Source
from pylink.files.atomic import WholeFile
from pylink.renderers.configuration import add_sarif_output, configure_sink
from pylink.renderers.sarif import SarifStream
from pylink.renderers.sarif_document import SarifDocument
from pylink.renderers.section_offset import section_offset

LEVELS = {
    "remark": "note",
    "warning": "warning",
    "error": "error",
    "catastrophe": "error",
    "internal_error": "error",
}


def report_all(sink: Sink) -> None:
    """One of everything: with and without line, section, symbol, notes, place; odd names."""
    sink.report("host-info-ignored")
    sink.report("stack-size", symbol="k", file="a.cubin", source=Source("k.cu", 3))
    sink.report(
        "undefined-reference",
        symbol='q"\n\x00\x1bé\U0001f600\udcff',
        file="a b#.cubin",
        section=".text.k",
        offset=80,
        source=Source("k.cu", 7, 5, 9),
        children=[
            Diagnostic("malformed", {"reason": "detail"}, type=DETAIL),
            Diagnostic("malformed", {"reason": "child"}, type=CHILD),
        ],
        notes=[note("referenced-here", symbol="f", file="b.cubin", section=".text.g")],
    )
    sink.report("symbol-range", file="c.cubin", section=".symtab", index=4)
    sink.report("undefined-reference", symbol="g", file="a.cubin")
    with pytest.raises(LinkError):
        sink.fatal("merge-failed")


def nowhere() -> WholeFile:
    return WholeFile("/dev/null")


def document(*, subject: str | None = "o.cubin") -> Any:
    sink = Sink(SarifDocument(nowhere(), subject=subject))
    report_all(sink)
    (renderer,) = sink.renderers
    assert isinstance(renderer, SarifDocument)
    return renderer.document(sink)


def run_of(sink: Sink) -> Any:
    renderer = SarifDocument(nowhere())
    for diagnostic in sink.diagnostics:
        renderer.emit(diagnostic)
    made: Any = renderer.document(sink)
    return made["runs"][0]


@pytest.fixture(scope="module")
def validate() -> Any:
    return sarif.validator()


def test_the_document_is_valid_by_the_schema(validate: Any) -> None:
    for subject in ("o.cubin", None):
        made = json.loads(json.dumps(document(subject=subject)))
        assert [error.message for error in validate.iter_errors(made)] == []
    empty = SarifDocument(nowhere()).document(Sink())
    assert validate.is_valid(empty)


def test_the_schema_rejects_a_broken_document(validate: Any) -> None:
    good = document()
    for breakage in ("level", "column", "message", "member"):
        broken = copy.deepcopy(good)
        result = broken["runs"][0]["results"][2]
        if breakage == "level":
            result["level"] = "catastrophe"
        elif breakage == "column":
            result["locations"][0]["physicalLocation"]["region"]["startColumn"] = 0
        elif breakage == "message":
            del result["message"]
        else:
            result["edgSeverity"] = "error"
        assert not validate.is_valid(broken), breakage


def test_levels_are_mapped_and_ours_are_kept() -> None:
    results = document()["runs"][0]["results"]
    assert [(r["ruleId"], r["level"], r["properties"]["edgSeverity"]) for r in results] == [
        ("EC119", "note", "remark"),
        ("EC501", "warning", "warning"),
        ("EC401", "error", "error"),
        ("EC313", "error", "error"),
        ("EC401", "error", "error"),
        ("EC404", "error", "catastrophe"),
    ]


def test_a_warning_that_was_made_an_error_says_so() -> None:
    sink = Sink()
    configure_sink(sink, {"diag_error": ("stack-size",)}, stream=io.StringIO())
    sink.report("stack-size", symbol="k", file="a.cubin")
    sink.report("undefined-reference", symbol="f", file="a.cubin")
    changed, other = run_of(sink)["results"]
    assert changed["level"] == "error"
    assert changed["properties"]["edgSeverity"] == "discretionary error"
    assert changed["properties"]["edgOriginalSeverity"] == "warning"
    assert "edgOriginalSeverity" not in other["properties"]


def test_the_results_are_those_of_the_stream() -> None:
    stream = io.StringIO()
    sink = Sink(SarifStream(stream))
    report_all(sink)
    streamed: Any = json.loads(f"[{stream.getvalue()}]")
    results = run_of(sink)["results"]
    assert [(s["ruleId"], LEVELS[s["level"]], s["message"]) for s in streamed] == [
        (r["ruleId"], r["level"], r["message"]) for r in results
    ]
    for result, other in zip(streamed, results, strict=True):
        for place in result.get("locations", []):
            physical = other["locations"][0]["physicalLocation"]
            assert place["physicalLocation"]["artifactLocation"] == physical["artifactLocation"]
            region = place["physicalLocation"].get("region", {})
            assert region.items() <= physical["region"].items()
        notes = [r["message"] for r in other.get("relatedLocations", [])]
        assert all(r["message"] in notes for r in result.get("relatedLocations", []))


def test_rules_are_those_used_with_their_help() -> None:
    run = document()["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["EC119", "EC313", "EC401", "EC404", "EC501"]
    assert all(rules[r["ruleIndex"]]["id"] == r["ruleId"] for r in run["results"])
    rule = rules[2]
    assert rule["name"] == "UndefinedReference"
    assert rule["shortDescription"]["text"] == "A symbol is used and no input defines it."
    assert rule["defaultConfiguration"] == {"level": "error"}
    for rule in rules:
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["help"]["markdown"]


def test_code_scanning_finds_all_it_asks_for() -> None:
    for result in document()["runs"][0]["results"]:
        assert result["message"]["text"]
        assert result["partialFingerprints"]["primaryLocationLineHash"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"]["uri"].startswith("file:///")
        if "k.cu" in physical["artifactLocation"]["uri"]:
            continue
        region = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 2}
        assert physical["region"] == region


def test_a_place_in_source_text_and_in_the_cubin() -> None:
    result = document()["runs"][0]["results"][2]
    (location,) = result["locations"]
    assert location["physicalLocation"]["region"] == {
        "startLine": 7,
        "startColumn": 5,
        "endLine": 7,
        "endColumn": 10,
    }
    section, symbol = location["logicalLocations"]
    assert section == {
        "name": ".text.k",
        "fullyQualifiedName": "a b#.cubin::.text.k",
        "kind": "section",
    }
    assert symbol["kind"] == "symbol"
    assert symbol["name"] == 'q"\n\x00\x1bé\U0001f600\\xff'
    assert [r["message"]["text"] for r in result["relatedLocations"]] == [
        "at a b#.cubin: .text.k+0x50",
        ": child",
        "b.cubin: .text.g: 'f' is referenced here",
    ]
    assert result["properties"]["details"] == [": detail"]


def test_ptx_is_no_file_that_a_result_is_shown_in() -> None:
    sink = Sink()
    sink.report(
        "undefined-reference",
        symbol="f",
        file="a.cubin",
        section=".text.k",
        offset=16,
        source=Source("a.cubin:.nv_debug_ptx_txt.7", 3, text="call f;"),
    )
    (result,) = run_of(sink)["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"].endswith("/a.cubin")
    assert result["properties"]["ptx"] == {"line": 3, "text": "call f;"}
    assert "relatedLocations" not in result


def small_elf(path: Path) -> None:
    """An ELF64 file with the sections `.text.k` at 0x100 and `.shstrtab`."""
    names = b"\0.text.k\0.shstrtab\0"
    header = b"\x7fELF\x02\x01\x01".ljust(18, b"\0") + (190).to_bytes(2, "little")
    header = header.ljust(40, b"\0") + (0x200).to_bytes(8, "little")
    header = header.ljust(58, b"\0") + b"\x40\0" + b"\3\0" + b"\2\0"

    def section(name: int, offset: int, size: int) -> bytes:
        head = name.to_bytes(4, "little").ljust(24, b"\0")
        return (head + offset.to_bytes(8, "little") + size.to_bytes(8, "little")).ljust(64, b"\0")

    data = header.ljust(0x100, b"\0") + b"T" * 0x40 + names
    table = section(0, 0, 0) + section(1, 0x100, 0x40) + section(9, 0x140, len(names))
    path.write_bytes(data.ljust(0x200, b"\0") + table)


def test_a_place_in_a_section_has_its_byte_offset_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.cubin"
    small_elf(path)
    sink = Sink()
    sink.report("section-range", file=str(path), section=".text.k", offset=0x10)
    sink.report("section-range", file=str(path), section=".absent", offset=0x10)
    sink.report("malformed", file=str(path), offset=0x240, reason="a section header ends")
    regions = [r["locations"][0]["physicalLocation"]["region"] for r in run_of(sink)["results"]]
    assert [region.get("byteOffset") for region in regions] == [0x110, None, 0x240]


@pytest.mark.parametrize("of_count", [True, False])
@pytest.mark.parametrize("of_names", [True, False])
def test_numbers_that_a_header_has_no_room_for_are_in_the_first_section(
    tmp_path: Path, of_count: bool, of_names: bool
) -> None:
    path = tmp_path / "a.cubin"
    small_elf(path)
    image = bytearray(path.read_bytes())
    if of_count:
        image[60:62] = bytes(2)
        image[0x200 + 32] = 3
    if of_names:
        image[62:64] = b"\xff\xff"
        image[0x200 + 40] = 2
    path.write_bytes(image)
    assert section_offset(str(path), ".text.k") == 0x100


@pytest.mark.parametrize("size", [0, 5, 63, 0x200, 0x210, 0x2A0])
def test_a_damaged_file_has_no_byte_offset(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.cubin"
    small_elf(path)
    path.write_bytes(path.read_bytes()[:size])
    sink = Sink()
    sink.report("section-range", file=str(path), section=".text.k")
    assert "byteOffset" not in json.dumps(run_of(sink))


def test_an_internal_error_is_a_notification() -> None:
    sink = Sink()
    with pytest.raises(LinkError):
        sink.fatal("internal-error", reason="no root")
    run = run_of(sink)
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    assert (notification["level"], notification["message"]) == ("error", {"text": "no root"})
    assert run["results"] == []
    sink = Sink()
    with pytest.raises(LinkError):
        sink.fatal("internal-error", reason="no root", file="a.cubin")
    assert len(run_of(sink)["results"]) == 1


def test_the_document_names_the_target_and_where_help_is() -> None:
    document = SarifDocument(nowhere(), target="sm_90a")
    sink = Sink(document)
    sink.report("undefined-reference", symbol="f", file="a.cubin")
    made: Any = document.document(sink)
    sarif.validator().validate(made)
    (run,) = made["runs"]
    assert run["automationDetails"] == {"id": "pylink/sm_90a/"}
    (result,) = run["results"]
    assert result["properties"]["arch"] == "sm_90a"
    driver = run["tool"]["driver"]
    assert driver["informationUri"].startswith("https://")
    assert driver["rules"][0]["helpUri"].endswith("#401-undefined-reference")


def test_the_invocation_tells_how_the_link_ended() -> None:
    sink = Sink()
    assert run_of(sink)["invocations"] == [{"executionSuccessful": True, "exitCode": 0}]
    sink.report("undefined-reference", symbol="f", file="a.cubin")
    assert run_of(sink)["invocations"] == [{"executionSuccessful": False, "exitCode": 255}]
    with pytest.raises(LinkError):
        sink.fatal("merge-failed")
    assert run_of(sink)["invocations"] == [{"executionSuccessful": False, "exitCode": 1}]


def test_a_fingerprint_stays_when_only_lines_move() -> None:
    def fingerprint(symbol: str, line: int, section: str = ".text.k", offset: int = 0) -> str:
        sink = Sink()
        sink.report(
            "undefined-reference",
            symbol=symbol,
            file="a",
            source=Source("k.cu", line),
            section=section,
            offset=offset,
        )
        text: str = run_of(sink)["results"][0]["partialFingerprints"]["primaryLocationLineHash"]
        return text

    assert fingerprint("f", 1) == fingerprint("f", 2)
    assert fingerprint("f", 1) == fingerprint("f", 1, offset=16)
    assert fingerprint("f", 1) != fingerprint("g", 1)
    assert fingerprint("f", 1) != fingerprint("f", 1, ".text.g")


def test_the_file_is_written_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "r.sarif"
    sink = Sink()
    add_sarif_output(sink, str(path), subject="o.cubin")
    report_all(sink)
    sink.close()
    made = json.loads(path.read_text(encoding="utf-8"))
    assert made["version"] == "2.1.0"
    assert len(made["runs"][0]["results"]) == 6


def test_a_file_that_cannot_be_written() -> None:
    sink = Sink(SarifDocument(WholeFile("/dev/full")))
    sink.close()
    assert [d.message for d in sink.diagnostics] == [
        "Writing '/dev/full' failed: No space left on device"
    ]
    assert sink.exit_code() == 1
    with pytest.raises(LinkError, match="Could not open output file"):
        add_sarif_output(Sink(), "/no/such/r.sarif")


def test_sarif_tools_counts_the_same(tmp_path: Path) -> None:
    if importlib.util.find_spec("sarif") is None:
        pytest.skip("sarif-tools is not installed")

    def rows(made: Any) -> list[tuple[str, str]]:
        path, table = tmp_path / "r.sarif", tmp_path / "r.csv"
        # The csv module that sarif-tools writes with cannot write NUL before Python 3.11.
        path.write_text(json.dumps(made).replace("\\u0000", ""))
        command = [sys.executable, "-m", "sarif", "csv", "-o", str(table), str(path)]
        subprocess.run(command, check=True, capture_output=True)
        with table.open(newline="") as lines:
            return [(row["Severity"], row["Code"]) for row in csv.DictReader(lines)]

    made = document()
    expected = sorted((r["level"], r["ruleId"]) for r in made["runs"][0]["results"])
    assert sorted(rows(made)) == expected
    made["runs"][0]["results"][2]["level"] = "catastrophe"  # it drops what it does not know
    assert sorted(rows(made)) != expected
