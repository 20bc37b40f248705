"""Rules: Python files that read a result and give advice.

A rule file defines `get_identifier` and `apply(handle)`, and optionally `get_name`,
`get_description`, `get_section_identifier`, `evaluate(handle)` and `get_parent_rules_identifiers`.
It imports the module `NvRules`: pylink provides `pylink.report.rules.nvrules` under this name,
Nsight Compute its own module.
"""
