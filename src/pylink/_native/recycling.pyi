"""Lends recycled pages of the process to arenas."""

class RecycledPages:
    """The recycled pages of some arenas; empty at first."""

    def give_back(self, *, unread: bool = False) -> None:
        """Recycle the pages of arenas to which nobody refers any more, which are then freed.

        With `unread` those of all arenas, which nobody may read any more.
        """
