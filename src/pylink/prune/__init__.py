"""`pylink prune`: files without the device code that need not be shipped.

Objects, archives and fat binaries become smaller. In finished libraries and programs, which count
as an experiment, entries move to the front of their container, and zeros fill the rest: so nothing
that anybody points to moves.

A result is read again before it is written: each payload that stays, and all host bytes, must be
what they were (`verification`). Nothing here decides what could go: `plan` asks `pylink.size`.
"""
