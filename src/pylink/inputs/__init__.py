"""Divides inputs that are not plain cubins into cubins, PTX and LTO-IR.

A link imports this only if it has such an input. docs/inputs.md describes the formats.
"""
