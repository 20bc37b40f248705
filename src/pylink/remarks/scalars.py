"""How a string stands in YAML so that both a YAML loader and LLVM's remark parser read it right.

LLVM's parser takes one apostrophe off each end of whatever stands there and undoes no escape. So a
string is written, in this order: plain where nothing speaks against it; between single quotes when
it has no apostrophe and no newline; as a block literal when it has newlines, and nothing at its
ends that would be lost; else between double quotes, which LLVM's parser takes for a part of it.

Bytes that are not UTF-8 appear as the text `\\xNN`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pylink.renderers.sarif import unicode_text

# Beyond ASCII: what neither ends a line nor is invisible to all readers.
_TEXT = r"\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
# Characters that stand unquoted anywhere but in front; LLVM's writer has the ASCII ones of them.
_PLAIN = re.compile(rf"(?![-,'])[0-9A-Za-z_^.,' {_TEXT}-]+")
# Loaders of YAML 1.1 or 1.2 see numbers, dates and other values in these.
_VALUE = re.compile(
    r"[+]?(0[xX][0-9a-fA-F_]+|0o[0-7]+|0b[01_]+|([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9_]+)([eE][-+]?[0-9]+)?"
    r"|\.(inf|Inf|INF))|\.(nan|NaN|NAN)|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?([Tt \t].*)?"
    r"|null|Null|NULL|true|True|TRUE|false|False|FALSE"
    r"|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF"
)
# What a YAML file may not hold as it is, or what a loader takes for a line break.
_ESCAPED = re.compile(rf"[^\t\n\x20-\x7e{_TEXT}]")
_NAMED = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


@lru_cache(maxsize=1 << 14)
def scalar(text: str, indent: int = 0) -> str:
    """The string as it stands after a key.

    `indent` is the column of the lines of a block literal; 0 says that there is no place for one,
    as in a flow mapping.
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
    if _PLAIN.fullmatch(text) is None or text[0] == " " or text[-1] in " '":
        return False
    return _VALUE.fullmatch(text) is None


def _is_trimmed(text: str) -> bool:
    """Whether LLVM's parser, or that of blocks, takes something off either end of a literal."""
    return text[0] in " \t\n'" or text.endswith("'")


def _escape(character: str) -> str:
    named = _NAMED.get(character)
    if named is not None:
        return named
    if _ESCAPED.match(character) is None:
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}"
