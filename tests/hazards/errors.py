"""What the checker raises of code that it cannot follow."""

from __future__ import annotations


class Unfollowed(Exception):
    """Nothing can be said of this code: it is damaged, or the checker does not know it."""
