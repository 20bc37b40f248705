"""The text of section and rule files, as users of reports write them."""

from __future__ import annotations


def section_text(identifier: str, name: str = "", extra: str = "") -> str:
    """Return a section with more fields in `extra`."""
    return f'Identifier: "{identifier}"\nDisplayName: "{name or identifier}"\n{extra}\n'


def rule_text(body: str, identifier: str = "Rule", extra: str = "") -> str:
    """Return a rule that runs `body`, which begins in line 8; `extra` holds more functions."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return (
        "import NvRules\n"
        f"def get_identifier():\n    return {identifier!r}\n"
        f"{extra}\n"
        "def apply(handle):\n"
        "    context = NvRules.get_context(handle)\n"
        "    fe = context.frontend()\n"
        f"{lines}\n"
    )


def of_section(identifier: str) -> str:
    """Return the function of a rule that belongs to a section, for `extra`."""
    return f"def get_section_identifier():\n    return {identifier!r}"
