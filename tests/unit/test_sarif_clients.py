"""The SARIF file of a real link, as written, in the hands of programs that read SARIF.

Each client has to accept it and to refuse a file that was broken on purpose: one that accepts
anything proves nothing.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import sarif
from helpers.cubin_builder import SHT_PROGBITS, Cubin, Section
from helpers.line_program import Lines, Row

import pylink

R_CALL = 58
CODE = bytes(range(128))


def needs(module: str, package: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed")


def cubin() -> bytes:
    """A kernel with two calls of a function that is nowhere, one of them inlined."""
    made = Cubin()
    kernel = made.function("k", kernel=True, code=CODE)
    lost = made.external("_Z4losti")
    made.call(kernel, lost)
    made.call(kernel, kernel)
    made.relocate(made.find(".text.k"), [(at, R_CALL, lost, 0) for at in (16, 64)], implicit=True)
    lines = Lines(files=[("k.cu", 0)], directories=[])
    lines.function(kernel, [Row(0, 1), Row(16, 2), Row(64, 3), Row(64, 1, inlined=(3, 1))])
    lines.add_to(made)
    made.section(Section(".debug_str", SHT_PROGBITS, b"\0_Z4usedi\0", align=1))
    return made.build()


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.cubin").write_bytes(cubin())
    (tmp_path / "k.cu").write_text("used lost\nlost k\nused\n")
    with pytest.raises(pylink.LinkError):
        pylink.link(["k.cubin"], arch="sm_80", output="out.cubin", sarif_output="link.sarif")
    return tmp_path / "link.sarif"


def by_schema(path: Path) -> None:
    sarif.validator().validate(json.loads(path.read_bytes()))


def by_pydantic(path: Path) -> None:
    from sarif_pydantic import Sarif  # noqa: PLC0415 -- an optional client

    text = path.read_text(encoding="utf-8")
    kept = Sarif.model_validate_json(text).model_dump(mode="json", by_alias=True, exclude_none=True)
    for rule in kept["runs"][0]["tool"]["driver"]["rules"]:
        del rule["defaultConfiguration"]["enabled"]  # which it adds; the default of SARIF
    assert kept == json.loads(text)


def by_tools(path: Path) -> None:
    table = path.with_suffix(".csv")
    command = [sys.executable, "-m", "sarif", "csv", "-o", str(table), str(path)]
    subprocess.run(command, check=True, capture_output=True)
    lines = table.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + len(json.loads(path.read_bytes())["runs"][0]["results"])


CLIENTS = [
    pytest.param(by_schema, id="schema"),
    pytest.param(by_pydantic, marks=needs("sarif_pydantic", "sarif-pydantic"), id="pydantic"),
    pytest.param(by_tools, marks=needs("sarif", "sarif-tools"), id="sarif-tools"),
]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_takes_the_file_and_refuses_a_broken_one(
    report: Path, client: Callable[[Path], None]
) -> None:
    client(report)
    made: Any = json.loads(report.read_bytes())
    made["runs"][0]["results"][0]["level"] = "catastrophe"
    broken = report.with_name("broken.sarif")
    broken.write_text(json.dumps(made))
    with pytest.raises(Exception, match=r"catastrophe|assert"):
        client(broken)
    broken.write_bytes(report.read_bytes()[:-20])
    with pytest.raises(Exception):  # noqa: B017, PT011 -- each client has its own
        client(broken)


def test_places_are_source_lines_logical_and_bytes_of_the_file(report: Path) -> None:
    made: Any = json.loads(report.read_bytes())
    warning, error = made["runs"][0]["results"]
    assert [warning["ruleId"], error["ruleId"]] == ["EC501", "EC401"]
    (location,) = error["locations"]
    place = location["physicalLocation"]
    assert place["artifactLocation"]["uri"] == (report.parent / "k.cu").as_uri()
    region = {"startLine": 1, "startColumn": 6, "endLine": 1, "endColumn": 10}
    assert place["region"] == region
    assert location["logicalLocations"] == [
        {"name": ".text.k", "fullyQualifiedName": "k.cubin::.text.k", "kind": "section"},
        {
            "name": "lost(int)",
            "decoratedName": "_Z4losti",
            "fullyQualifiedName": "k.cubin::_Z4losti",
            "kind": "symbol",
        },
    ]
    related = error["relatedLocations"]
    assert [(location["id"], location["message"]["text"]) for location in related] == [
        (0, "at k.cubin: .text.k+0x40"),
        (1, "'used(int)' is inlined here"),
        (2, "k.cubin: .text.k+0x10: '_Z4losti' is referenced here"),
    ]
    in_cubin = related[0]["physicalLocation"]
    assert in_cubin["artifactLocation"]["uri"] == (report.parent / "k.cubin").as_uri()
    start = in_cubin["region"]["byteOffset"]
    data = (report.parent / "k.cubin").read_bytes()
    assert data[start : start + 16] == CODE[64:80]


def test_the_log_has_the_same_places(report: Path) -> None:
    with pytest.raises(pylink.LinkError):
        pylink.link(["k.cubin"], arch="sm_80", diag_log="link.log")
    assert (report.parent / "link.log").read_text().splitlines() == [
        "W \"k.cu\" 1 0 Stack size for entry function 'k' cannot be statically determined "
        "(target: sm_80)",
        "w \"k.cu\" 1 0 k.cubin: .text.k+0x0: recursion: 'k' calls 'k' here",
        "E \"k.cu\" 1 6 Undefined reference to '_Z4losti' in 'k.cubin' (target: sm_80)",
        "e \"k.cu\" 3 1 'used(int)' is inlined here",
        "e \"k.cu\" 2 1 k.cubin: .text.k+0x10: '_Z4losti' is referenced here",
    ]
