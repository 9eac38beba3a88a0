"""The plan of a contraction's kernel: every choice that its code is built by, as data and as a line of text.

A plan reads ``tile=8x2x16 sums=fma accumulators=8 unroll=4 fetch=5:8192 blocks=128x256x256:24 threads=columns``. Fields
that are off are left out. ``plan`` makes one, ``check_plan`` says whether an edited one fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from ....plan_text import one_of, positive, positives, print_fields, read_fields
from .matrix_shape import TILE_ROWS

__all__ = [
    "BLOCKS",
    "COLUMNS",
    "PARTS",
    "ROWS",
    "Blocks",
    "ContractionPlan",
    "Fetch",
    "MatrixTile",
    "Parts",
    "RegisterTile",
    "SplitTile",
    "Staging",
    "batch_loop",
    "parse_plan",
    "shared_loop",
]

#: Loops that threads may share, beside those of :func:`batch_loop` and :func:`shared_loop`.
COLUMNS, ROWS, BLOCKS, PARTS = "columns", "rows", "blocks", "parts"


def batch_loop(number: int) -> str:
    """The name of the loop over a batch dimension."""
    return f"batch{number}"


def shared_loop(number: int) -> str:
    """The name of the loop over a dimension that the left operand has alone."""
    return f"shared{number}"


@dataclass(frozen=True)
class RegisterTile:
    """Sums that are in registers at once: ``rows`` times ``vectors`` of so many ``lanes``."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    def __str__(self) -> str:
        return f"{self.rows}x{self.vectors}x{self.lanes}"


@dataclass(frozen=True)
class MatrixTile:
    """Rows whose products are summed in tile registers, all columns of a panel at once.

    Attributes:
        rows: of a tile at most, two registers.
        words: steps of k that an instruction takes, in words of 32 bits.
        least: tiles of fewer rows, which are what others leave, sum in vectors.
        line: rows of a register, where only so many, from a multiple of them on, begin the same distance apart, as those of an
            image's line do; 0: any.
    """

    rows: int
    words: int
    least: int
    line: int = 0

    def __str__(self) -> str:
        return f"{self.rows}x{self.words}:{self.least}" + (f":{self.line}" if self.line else "")

    def registers(self, rows: int) -> tuple[int, ...]:
        """How many rows each register has of so many."""
        if self.line:
            return (self.line,) * (rows // self.line)
        return (rows,) if rows <= TILE_ROWS else ((rows + 1) // 2, rows // 2)


@dataclass(frozen=True)
class Fetch:
    """What is asked for ahead of its use: for tiles of at least so many rows, so many bytes ahead of what they read."""

    rows: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.rows}:{self.bytes}"


@dataclass(frozen=True)
class Staging:
    """The right factor of a panel, or of a block, is computed once and left on the stack.

    Attributes:
        in_tile: whether the first tile of rows does that, between its multiply-adds; else it is done before all tiles.
        above: of a whole panel, for more rows than these; None: of blocks only.
    """

    in_tile: bool
    above: int | None

    def __str__(self) -> str:
        return f"{'tile' if self.in_tile else 'before'}:{'blocks' if self.above is None else self.above}"


@dataclass(frozen=True)
class Blocks:
    """Rows, columns and steps of k of a block whose sums are on the stack.

    Attributes:
        rows, columns, depth: of a block at most.
        above: more rows than these are cut into blocks.
        few: where sizes that are known at run time give fewer blocks, these have fewer columns; 0: they never have.
    """

    rows: int
    columns: int
    depth: int
    above: int
    few: int = 0

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}x{self.depth}:{self.above}" + (f":{self.few}" if self.few else "")


@dataclass(frozen=True)
class Parts:
    """Rows go through all columns in parts, where a cache holds the right factor.

    Attributes:
        rows, left: a part has about so many rows, or as many as have so many elements of the left factor, if these are more.
        right: elements of the right factor, at most.
    """

    rows: int
    left: int
    right: int

    def __str__(self) -> str:
        return f"{self.rows}:{self.left}:{self.right}"


@dataclass(frozen=True)
class SplitTile:
    """Elements of both factors become sums of bf16, whose products tile registers sum, in blocks.

    Attributes:
        left, right: how many bf16 an element of each is.
        blocks: which ones; fewer rows are summed without.
        always: whether all calls have rows for blocks, however many.
    """

    left: int
    right: int
    blocks: Blocks
    always: bool = False

    def __str__(self) -> str:
        return f"{self.left}x{self.right}:{self.blocks}{':always' if self.always else ''}"


@dataclass(frozen=True)
class ContractionPlan:
    """How one contraction is computed.

    Attributes:
        tile: the register tile.
        sums: how a tile sums: ``fma``, a step of k at a time; ``words``, the same with two bf16 of a word widened by a shift
            and a mask; ``groups``, sums of groups of steps that are scaled when they are complete; ``dot``, pairs of bf16 by an
            instruction; ``integers``, exact sums of integers that are scaled; ``bytes``, exact sums of neighbouring bytes;
            ``folded``, of few columns several steps of k in a vector.
        instruction: LLVM's name of the one for ``dot``, ``integers`` or ``bytes``; empty: plain operations.
        accumulators: sums in flight; where a tile has fewer, each has several copies.
        group_accumulators: the same of ``groups``.
        unroll: steps of k in an iteration; of ``dot`` pairs, of ``integers`` and ``bytes`` vectors.
        group_unroll: the same of ``groups``, and of what is staged.
        fold: of ``folded``, steps of k in a vector.
        stream_bytes: of ``dot``, bytes of the right operand that an iteration reads for fewer rows than are fetched for.
        loop_above: of ``integers``, how many vectors of a group need no loop.
        panels: panels that a tile of few rows takes at once, as memory gives more to several streams.
        scaled_left: whether few rows are scaled first, so that the integers of words need no shift.
        fetch: of a packed right operand, by tiles that have a panel for themselves.
        stage: of a right factor that takes long to compute.
        blocks: of a long k.
        copied_left: whether rows of a block are copied, which tiles read then.
        parts: of many rows, where a cache holds the right factor.
        matrix: of what tile registers multiply, in the place of tiles of ``tile``'s rows.
        split: of f32 for tile registers that multiply bf16.
        joined: whether tiles, all whole, go on from one place in the shared loop to the next, as if rows were numbered through.
        threads: the loops whose iterations threads share; of nested ones the outermost does.
    """

    tile: RegisterTile
    sums: str
    instruction: str = ""
    accumulators: int = 8
    group_accumulators: int = 8
    unroll: int = 4
    group_unroll: int = 8
    fold: int = 1
    stream_bytes: int = 0
    loop_above: int = 0
    panels: int = 1
    scaled_left: bool = False
    fetch: Fetch | None = None
    stage: Staging | None = None
    blocks: Blocks | None = None
    copied_left: bool = False
    parts: Parts | None = None
    matrix: MatrixTile | None = None
    split: SplitTile | None = None
    joined: bool = False
    threads: tuple[str, ...] = ()

    def __str__(self) -> str:
        return print_fields((f.name, getattr(self, f.name)) for f in fields(self) if self._is_shown(f.name))

    def _is_shown(self, name: str) -> bool:
        if name in _OF_SUMS:
            return self.sums == _OF_SUMS[name] or (name == "group_unroll" and self.stage is not None)
        return name in _ALWAYS or (bool(getattr(self, name)) and (name != "panels" or self.panels > 1))

    @property
    def height(self) -> int:
        """Rows of a whole tile."""
        return self.tile.rows if self.matrix is None else self.matrix.rows

    def copies(self, sums: int) -> int:
        """How many accumulators each of so many sums has, so that additions overlap: a power of two."""
        return _power_below(self.accumulators // sums)

    def group_copies(self, sums: int) -> int:
        """The same of the sums of a group."""
        return _power_below(self.group_accumulators // sums)

    def fetches(self, rows: int) -> bool:
        """Whether a tile of so many rows fetches ahead what it will read itself."""
        return self.fetch is not None and rows >= self.fetch.rows

    @staticmethod
    def fetch_shares(tiles: int | None) -> int:
        """Into how many shares tiles that read one panel divide what follows it: a power of two; 0 where a tile is alone."""
        if tiles is None or tiles >= 4:
            return 4
        return 2 if tiles >= 2 else 0

    def low_heights(self, rows: int) -> list[int]:
        """The heights of the tiles behind the whole ones, of so many rows.

        Two of similar height instead of a whole and a low one: 4 + 4 for 8 rows, not 6 + 2.
        """
        most = self.height
        rest = rows % most
        if not rest or rows < most or (self.matrix is not None and self.matrix.line):
            return [rest] if rest else []
        return [(most + rest + 1) // 2, (most + rest) // 2]

    def first_height(self, rows: int | None) -> int:
        """The height of the first tile of so many rows; of an unknown number there is a whole one."""
        low = [] if rows is None else self.low_heights(rows)
        return self.height if rows is None or rows > sum(low) else low[0]


def _power_below(most: int) -> int:
    """The largest power of two up to a number, 1 at least."""
    return 1 << max(1, most).bit_length() - 1


# Printed whatever they are.
_ALWAYS = ("tile", "sums", "accumulators", "unroll")
# Printed for one way of summing.
_OF_SUMS = {
    "group_accumulators": "groups",
    "group_unroll": "groups",
    "fold": "folded",
    "stream_bytes": "dot",
    "loop_above": "integers",
}


def parse_plan(text: str) -> ContractionPlan:
    """The plan of a line. Raises RelaxError for one that :meth:`ContractionPlan.__str__` does not give."""
    given = read_fields(text, _READERS, _EXAMPLES, _ALWAYS)
    return ContractionPlan(**given)  # type: ignore[arg-type]


def _tile(text: str) -> RegisterTile:
    rows, vectors, lanes = map(positive, text.split("x"))
    return RegisterTile(rows, vectors, lanes)


def _fetch(text: str) -> Fetch:
    rows, ahead = map(positive, text.split(":"))
    return Fetch(rows, ahead)


def _staging(text: str) -> Staging:
    way, above = text.split(":")
    return Staging({"tile": True, "before": False}[way], None if above == "blocks" else positive(above))


def _blocks(text: str) -> Blocks:
    sizes, limits = text.split(":", 1)
    rows, columns, depth = positives(sizes)
    above, *more = positives(limits, ":")
    (few,) = more or [0]
    return Blocks(rows, columns, depth, above, few)


def _parts(text: str) -> Parts:
    rows, left, right = map(positive, text.split(":"))
    return Parts(rows, left, right)


def _matrix(text: str) -> MatrixTile:
    sizes, least = text.split(":", 1)
    rows, words = positives(sizes)
    return MatrixTile(rows, words, *positives(least, ":"))


def _split(text: str) -> SplitTile:
    parts, blocks = text.removesuffix(":always").split(":", 1)
    left, right = positives(parts)
    return SplitTile(left, right, _blocks(blocks), text.endswith(":always"))


def _yes(text: str) -> bool:
    return one_of("yes")(text) == "yes"


def _keyed(read: Callable[[str], object]) -> Callable[[str], object]:
    """The same with unknown words as ValueErrors."""

    def reading(text: str) -> object:
        try:
            return read(text)
        except KeyError:
            raise ValueError(text) from None

    return reading


_READERS: dict[str, Callable[[str], object]] = {
    "tile": _tile,
    "sums": one_of("fma", "words", "groups", "dot", "integers", "bytes", "folded"),
    "instruction": str,
    "accumulators": positive,
    "group_accumulators": positive,
    "unroll": positive,
    "group_unroll": positive,
    "fold": positive,
    "stream_bytes": positive,
    "loop_above": positive,
    "panels": positive,
    "scaled_left": _yes,
    "fetch": _fetch,
    "stage": _keyed(_staging),
    "blocks": _blocks,
    "copied_left": _yes,
    "parts": _parts,
    "matrix": _matrix,
    "split": _split,
    "joined": _yes,
    "threads": lambda text: tuple(text.split("+")),
}
_EXAMPLES = {
    "tile": "rows x vectors x lanes, such as tile=8x2x16",
    "sums": "fma, words, groups, dot, integers, bytes or folded",
    "instruction": "LLVM's name of an instruction",
    "accumulators": "a positive number of accumulators",
    "group_accumulators": "a positive number of accumulators",
    "unroll": "a positive number of steps",
    "group_unroll": "a positive number of steps",
    "fold": "a positive number of steps",
    "stream_bytes": "a positive number of bytes",
    "loop_above": "a positive number of vectors",
    "panels": "a positive number of panels",
    "scaled_left": "scaled-left=yes",
    "fetch": "rows and bytes ahead, such as fetch=5:8192",
    "stage": "tile or before and a number of rows, or blocks, such as stage=tile:8",
    "copied_left": "copied-left=yes",
    "blocks": "rows x columns x depth and a number of rows, such as blocks=128x256x256:24",
    "parts": "rows and elements of both factors, such as parts=128:16384:8388608",
    "matrix": "rows x words and the least number of rows, such as matrix=32x16:8",
    "split": "parts of both factors and blocks, such as split=3x3:128x512x512:63:8:always",
    "joined": "joined=yes",
    "threads": "loops, such as threads=batch0+columns",
}
