"""The cubins of the demo, one program for several architectures."""

from __future__ import annotations

from pathlib import Path

DEMO = Path(__file__).parents[2] / "demo" / "cubins"
ARCHES = sorted(folder.name for folder in DEMO.iterdir())


def cubins(arch: str) -> list[Path]:
    """Return the inputs of the demo's link for an architecture, such as sm_90a, in link order."""
    return sorted((DEMO / arch).glob("*.cubin"))
