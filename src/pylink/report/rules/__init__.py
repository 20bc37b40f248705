"""Rules: Python files that read a result and say what to do about it.

A rule file defines `get_identifier` and `apply(handle)`, and where it likes `get_name`,
`get_description`, `get_section_identifier`, `evaluate(handle)` and
`get_parent_rules_identifiers`. It imports `NvRules`, which is `pylink.report.rules.nvrules` while
rules run here and Nsight Compute's own module there.
"""
