"""`pylink audit`: whether the kernels of a program, its libraries and plugins will be found.

It only reads files: it loads and runs nothing. docs/audit.md is the page for users.
"""
