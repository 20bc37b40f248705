"""`pylink audit`: whether the kernels of a program, its libraries and plugins will be found.

Everything is read from files; nothing is loaded or run. docs/audit.md is the page for users.
"""
