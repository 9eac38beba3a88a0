"""How attention cuts its keys: blocks that are scored at once, and parts of one row's keys that threads share."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KeyBlocks"]


@dataclass(frozen=True)
class KeyBlocks:
    """The sizes, by default those that suit processors.

    Attributes:
        keys: of a block: their scores for 32 rows in f32 are 48 KiB, beside which keys and values fit a second-level cache. A
            multiple of the rows of either register tile, 6 and 8.
        single: so many keys are one block: nothing has to be scaled again.
        shown: keys of a block where a mask may show different ones to rows: what it hides is left out by whole blocks. Of 2048
            of which 128 rows see 128, such blocks take 1.5 ms, those of 384 keys 4.3 and all 22; where rows see all, both take
            as long.
        parts: blocks that are a part: of one row, threads share parts, the same ones whatever the number of threads.
    """

    keys: int = 384
    single: int = 512
    shown: int = 144
    parts: int = 4

    def at_once(self, differs: bool) -> tuple[int, int]:
        """Keys of a block, and how many are one; ``differs``: whether a mask may show different ones to rows."""
        return (self.shown, self.shown) if differs else (self.keys, self.single)
