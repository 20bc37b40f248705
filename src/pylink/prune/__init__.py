"""`pylink prune`: removes device code that need not be shipped from files.

Objects, archives and fat binaries become smaller. In finished libraries and programs, which are
experimental, the remaining entries move to the front of their container and zeros fill the rest, so
that nothing outside of containers moves.

A result is read again before it is written: each remaining payload and all host bytes must be
unchanged (`verification`). `plan` asks `pylink.size` what can be removed.
"""
