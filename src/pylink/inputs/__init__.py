"""Inputs that are not plain cubins: each kind is taken apart into cubins, PTX and LTO-IR.

Imported only when a link has such an input. docs/inputs.md has what was found about the formats.
"""
