"""A picture of the floors of src/pylink: `python scripts/draw_floors.py > docs/floors.svg`.

It is drawn from the contract in pyproject.toml that lint checks. A room may import rooms of lower
floors; rooms of one floor do not import each other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Pixels: width of the picture, height of a floor, and distance of boxes.
WIDTH, HEIGHT, GAP = 760, 26, 6

STYLE = """
rect { fill: #eef2f7; stroke: #5b6b7f; }
text { fill: #1f2933; font: 13px sans-serif; text-anchor: middle; }
@media (prefers-color-scheme: dark) {
  rect { fill: #27313d; stroke: #8fa1b5; }
  text { fill: #e6ebf1; }
}
"""


def read_floors() -> list[list[str]]:
    """Return the rooms (packages of pylink) of each floor (layer of imports), the top one first."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r'^name = "Floors"\n.*?^layers = (\[.*?^\])', text, re.MULTILINE | re.DOTALL)
    assert match is not None, "pyproject.toml has no contract called Floors"
    layers: list[str] = ast.literal_eval(match[1])
    return [layer.split(" | ") for layer in layers]


def svg_lines(rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines of the picture; `rows` are the rooms of each floor from the top."""
    height = len(rows) * (HEIGHT + GAP) + GAP
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">'
    yield "<title>Floors of src/pylink: a room imports rooms on lower floors</title>"
    yield f"<style>{STYLE}</style>"
    for number, rooms in enumerate(rows):
        top = GAP + number * (HEIGHT + GAP)
        width = (WIDTH - GAP) / len(rooms) - GAP
        for column, room in enumerate(rooms):
            left = GAP + column * (width + GAP)
            shape = f'width="{width:.0f}" height="{HEIGHT}" rx="4"'
            yield f'<rect x="{left:.0f}" y="{top}" {shape}/>'
            yield f'<text x="{left + width / 2:.0f}" y="{top + 18}">{room}</text>'
    yield "</svg>"


if __name__ == "__main__":
    print("\n".join(svg_lines(read_floors())))
