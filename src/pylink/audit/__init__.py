"""`pylink audit`: checks that a program will find its kernels and those of its libraries.

It only reads files: it loads and runs nothing. docs/audit.md is the page for users.
"""
