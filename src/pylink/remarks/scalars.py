"""Writes strings in YAML so that both YAML loaders and LLVM's remark parser read them correctly.

LLVM's parser removes one apostrophe from each end of any scalar and undoes no escape. So a string
is written, in order of preference: plain; in single quotes, if it has no apostrophe and no newline;
as a block literal, if it has newlines and nothing at its ends would be lost; else in double quotes,
which LLVM's parser reads as part of the string.

Bytes that are not UTF-8 become the text `\\xNN`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pylink.renderers.sarif import unicode_text

# Characters beyond ASCII for patterns, without control characters, line ends, surrogates,
# the byte order mark, U+FFFE and U+FFFF.
_TEXT = r"\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
# A text whose characters need no quotes; those in `(?!...)` need them at the start. The characters
# of ASCII, except the apostrophe, are those that LLVM's writer does not quote either.
_PLAIN = re.compile(rf"(?![-,'])[0-9A-Za-z_^.,' {_TEXT}-]+")
# Texts that loaders of YAML 1.1 or 1.2 read as numbers, dates and other values.
_VALUE = re.compile(
    r"[+]?(0[xX][0-9a-fA-F_]+|0o[0-7]+|0b[01_]+|([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9_]+)([eE][-+]?[0-9]+)?"
    r"|\.(inf|Inf|INF))|\.(nan|NaN|NAN)|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?([Tt \t].*)?"
    r"|null|Null|NULL|true|True|TRUE|false|False|FALSE"
    r"|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF"
)
# Characters that a YAML file may not contain, or that a loader reads as a line break.
_ESCAPED = re.compile(rf"[^\t\n\x20-\x7e{_TEXT}]")
_NAMED_ESCAPES = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


@lru_cache(maxsize=1 << 14)
def scalar(text: str, indent: int = 0) -> str:
    """Return a string as it is written in YAML as a key or value.

    `indent` is the column of the lines of a block literal; 0 forbids block literals and commas
    without quotes, as in a flow mapping (`{ File: a, Line: 1 }`).
    """
    if not text.isascii():
        text = unicode_text(text)
    if _is_plain(text) and (indent or "," not in text):
        return text
    if _ESCAPED.search(text) is None:
        if "\n" not in text:
            if "'" not in text:
                return f"'{text}'"
        elif indent and not _is_trimmed(text):
            chomping = "-" if text[-1] != "\n" else "+" if text[-2] == "\n" else ""
            lines = text.removesuffix("\n").split("\n")
            margin = "\n" + " " * indent
            return "|" + chomping + "".join(margin + line if line else "\n" for line in lines)
    return f'"{"".join(map(_escape, text))}"'


def _is_plain(text: str) -> bool:
    """Return whether a text needs no quotes in YAML."""
    if _PLAIN.fullmatch(text) is None or text[0] == " " or text[-1] in " '":
        return False
    return _VALUE.fullmatch(text) is None


def _is_trimmed(text: str) -> bool:
    """Return whether LLVM's parser, or YAML for a block literal, would trim an end of the text."""
    return text[0] in " \t\n'" or text.endswith("'")


def _escape(character: str) -> str:
    """Return a character as it stands between double quotes: itself, or its escape sequence."""
    escape = _NAMED_ESCAPES.get(character)
    if escape is not None:
        return escape
    if _ESCAPED.match(character) is None:
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}"
