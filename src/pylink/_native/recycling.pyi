"""Lends recycled pages, memory of freed blocks that the process keeps, to arenas."""

class RecycledPages:
    """The arenas (buffers of input files) on recycled pages, and where in each these pages are."""

    def give_back(self) -> None:
        """Recycle the pages of arenas to which nobody refers any more, and free these arenas."""
