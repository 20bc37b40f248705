"""Says in the head of a test run whether the CUDA tools are there to compare with."""

from __future__ import annotations

from helpers import oracle


def pytest_report_header() -> str:
    found = oracle.find()
    if found is None:
        return f"oracle: no nvlink {oracle.NVLINK_RELEASE}; tests that compare with it are skipped"
    return f"oracle: nvlink {oracle.NVLINK_RELEASE} in {found.bin}"
