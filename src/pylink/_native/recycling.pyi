"""Lends recycled pages of the process to arenas."""

class RecycledPages:
    """The recycled pages of some arenas; empty at first."""

    def give_back(self) -> None:
        """Recycle the pages of arenas to which nobody refers any more, and free these arenas."""
