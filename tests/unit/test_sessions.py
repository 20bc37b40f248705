"""The reader of commands and outputs on pages finds what a page shows wrongly."""

from __future__ import annotations

import pytest
from helpers.sessions import Block, blocks, commands, prints, sessions

PAGE = """\
```console
$ pylink demo
a file, 4.1 ms
...
end
$ ls \\
  -l
```

```console
pylink a.cubin
```

```cuda title="square.cu"
int square();
```
"""


def test_a_session_has_commands_with_outputs() -> None:
    (session,) = sessions(PAGE)
    assert list(commands(session)) == [
        ("pylink demo", "a file, 4.1 ms\n...\nend\n"),
        ("ls   -l", ""),
    ]


def test_a_block_has_a_language_and_may_name_a_file() -> None:
    assert [block.language for block in blocks(PAGE)] == ["console", "console", "cuda"]
    assert list(blocks(PAGE))[1:] == [
        Block("console", "", "pylink a.cubin\n"),
        Block("cuda", "square.cu", "int square();\n"),
    ]


@pytest.mark.parametrize(
    ("printed", "same"),
    [
        ("a file, 12 ms\nmore\nmore\nend\n", True),
        ("a file, 0.3 ms\nend", True),
        ("another file, 12 ms\nend\n", False),
        ("a file, 12 ms\nend\nmore\n", False),
        ("a file, 12 ms\nmore\n", False),
        ("", False),
    ],
)
def test_an_output_is_compared_line_by_line(printed: str, same: bool) -> None:
    assert prints("a file, 4.1 ms\n...\nend\n", printed) is same


def test_dots_in_a_line_stand_for_any_text() -> None:
    assert prints("ok /tmp/.../socket\n", "ok /tmp/a/b/socket\n")
    assert not prints("ok /tmp/.../socket\n", "ok /tmp/a/b/other\n")


def test_a_command_without_an_output_prints_nothing() -> None:
    assert prints("", "")
    assert not prints("", "pylink warning : ...\n")
