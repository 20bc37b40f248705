"""Divides inputs that are not plain cubins into cubins, PTX and LTO-IR.

Imported only if a link has such an input. docs/inputs.md describes the formats.
"""
