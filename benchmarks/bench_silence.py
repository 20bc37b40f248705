"""The cost of diagnostics and remarks that are all filtered out, compared with a link without them.

Both links write the same file; a round is one of each, in turn. The processor time of the fastest
rounds counts: a link takes tens of milliseconds, and other programs change that by more than the
limit of two percent.
"""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import oracle
from pytest_benchmark.fixture import BenchmarkFixture

import pylink
from benchmarks import inputs
from benchmarks.report import Report

ROUNDS = 61
COUNT = 400

# Options that make a link compute diagnostics or remarks, of which none is shown.
SILENT: dict[str, dict[str, object]] = {
    "format and numbers": {
        "diagnostics_format": "text",
        "display_error_number": True,
        "error_limit": 5,
        "diag_once": ("501",),
    },
    "warnings filtered": {
        "diag_suppress": ("stack-size", "referenced-here", "first-defined-here"),
        "diag_remark": ("not-folded",),
    },
    "remarks filtered": {
        "pass_remarks": "^nothing$",
        "pass_remarks_missed": "^nothing$",
        "pass_remarks_analysis": "^nothing$",
    },
}


@oracle.needs_oracle
@pytest.mark.parametrize("silence", SILENT)
@pytest.mark.parametrize("arch", ["100", "90a"])
def test_bench_silence(
    benchmark: BenchmarkFixture,
    report: Report,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arch: str,
    silence: str,
) -> None:
    folder, names = inputs.cubins(arch, "15KB", COUNT)
    monkeypatch.chdir(folder)
    output = tmp_path / "out.cubin"
    plain: list[float] = []
    silent: list[float] = []

    def link(**options: Any) -> float:
        """Link once with the options; returns the seconds of processor time."""
        start = time.process_time()
        log = io.StringIO()
        pylink.link(names, arch=f"sm_{arch}", output=output, log=log, **options)
        seconds = time.process_time() - start
        assert log.getvalue() == ""
        return seconds

    link()
    plain_image = output.read_bytes()
    benchmark.group = f"silence, sm_{arch}, {COUNT} inputs"
    benchmark.pedantic(
        lambda: silent.append(link(**SILENT[silence])),
        setup=lambda: plain.append(link()),
        rounds=ROUNDS,
    )
    assert output.read_bytes() == plain_image
    if benchmark.stats is not None:  # None when benchmarks are disabled
        report.silences[f"sm_{arch}, {COUNT} inputs, {silence}"] = min(silent) / min(plain)
