"""A contraction's shape and a target in, the plan of its kernel out: the one place where these choices are made."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, gcd, prod

from .....dialect.packed_layout import NARROWEST
from ....kernels.emit.emitter import ENOUGH_WORK
from ....target import Target
from .contraction_plan import (
    BLOCKS,
    COLUMNS,
    PARTS,
    ROWS,
    Blocks,
    ContractionPlan,
    Fetch,
    MatrixTile,
    Parts,
    RegisterTile,
    Staging,
    batch_loop,
    shared_loop,
)
from .matrix_shape import TILE_ROWS, TILE_WORDS, words_at_once
from .shape import ContractionShape
from .split_plan import plan_split
from .tuning import LINE, Tuning, tuning_of

__all__ = ["can_fold", "can_multiply_tiles", "can_stage", "needed_instruction", "plan_contraction"]


def plan_contraction(shape: ContractionShape, target: Target) -> ContractionPlan:
    """The plan of a contraction on a target."""
    return _Planner(shape, target).plan()


def can_stage(shape: ContractionShape, tile: RegisterTile, depth: int, tuning: Tuning) -> bool:
    """Whether so many steps of a panel are small enough to stage, and begin where groups do or are inside of one."""
    size = 0 if shape.group is None else shape.group.size
    fits = depth * tile.columns * shape.bits // 8 <= tuning.stage_bytes
    return fits and (not size or depth % size == 0 or size % depth == 0)


def can_multiply_tiles(shape: ContractionShape, target: Target, tile: RegisterTile) -> bool:
    """Whether tile registers multiply panels of so many columns."""
    matrix = shape.matrix
    if matrix is None or not target.multiplies_tiles(matrix.instruction) or tile.lanes != TILE_WORDS or tile.vectors > 2:
        return False
    return matrix.panel % tile.columns == 0 and shape.element in ("f32", "i32")


def can_fold(shape: ContractionShape, tile: RegisterTile, fold: int) -> bool:
    """Whether a vector may take so many steps of k of all columns at once."""
    if not shape.folds or shape.element != "f32" or shape.outer or shape.depth is None:
        return False
    is_one = tile.vectors == 1 and shape.columns is not None and tile.lanes // 2 < shape.columns <= tile.lanes
    return fold > 1 and shape.depth % fold == 0 and is_one


def needed_instruction(shape: ContractionShape, target: Target, tile: RegisterTile, sums: str) -> str:
    """The target's instruction for a way to sum, by LLVM's name; empty where it has none for it.

    Of integers it takes so many neighbours of such signs, in whole vectors; words and i16 are right in either sign.
    """
    integers, dot = shape.integers, target.int8_dot
    if sums == "bytes":
        return _byte_instruction(shape, target, tile)
    if sums == "dot":
        return "" if target.bf16_dot is None else target.bf16_dot.name
    if sums != "integers" or integers is None or dot is None:
        return ""
    is_byte = not integers.is_word and integers.rows == 4
    takes = dot.rows == integers.rows and tile.lanes == target.lanes() and (not is_byte or integers.is_unsigned == dot.unsigned)
    return dot.name if takes else ""


def _byte_instruction(shape: ContractionShape, target: Target, tile: RegisterTile) -> str:
    """One that takes an unsigned and a signed byte, where the target's takes such, else two signed ones; or any, as i16."""
    found, dot = shape.bytes, target.int8_dot
    if found is None or dot is None or dot.rows != found.rows or tile.lanes != target.lanes():
        return ""
    unsigned = found.left_unsigned + found.right_unsigned
    return dot.name if dot.rows == 2 or unsigned == dot.unsigned else ""


class _Planner:
    """The choices for one contraction, each made from those before it."""

    def __init__(self, shape: ContractionShape, target: Target):
        self.shape, self.target, self.tuning = shape, target, tuning_of(target)
        self.tile = self._tile()
        self.sums, self.instruction = self._sums()
        self.few_rows = self._tiles_before_staging() * self.tile.rows
        self.panels = self._panels()
        self.matrix = self._matrix()
        self.split = None if self.matrix else plan_split(shape, target, self.tile, self.sums, self.tuning)
        self.blocks = self._blocks()
        self.tile = self._even_tile()
        self.stage = self._stage()
        self.parts = self._parts()

    def plan(self) -> ContractionPlan:
        tuning = self.tuning
        return ContractionPlan(
            tile=self.tile,
            sums=self.sums,
            instruction=self.instruction,
            accumulators=tuning.accumulators,
            group_accumulators=self._sums_at_once(tuning.accumulators) if self.sums == "groups" else tuning.accumulators,
            unroll={"dot": tuning.dot_unroll, "integers": tuning.integer_unroll}.get(self.sums, tuning.unroll),
            group_unroll=self._group_unroll(),
            fold=self._fold() if self.sums == "folded" else 1,
            stream_bytes=tuning.dot_stream_bytes if self.sums == "dot" else 0,
            loop_above=tuning.integer_short if self.sums == "integers" else 0,
            panels=self.panels,
            scaled_left=self._scales_left(),
            fetch=self._fetch(),
            stage=self.stage,
            blocks=self.blocks,
            copied_left=self._copies_left(),
            parts=self.parts,
            matrix=self.matrix,
            split=self.split,
            threads=self._threads(),
        )

    def _tile(self) -> RegisterTile:
        """The target's; f64 takes two registers a vector, and vectors of integers are of one panel.

        Fewer columns than a vector has lanes, as groups of filters have, take narrower vectors.
        """
        rows, columns = self.target.matmul_tile
        lanes, integers, every = self.target.lanes(), self.shape.integers, self.shape.columns
        rows, vectors = max(1, rows * 32 // max(32, self.shape.bits)), max(1, columns // lanes)
        whole = self.target.bf16_dot is not None and self.shape.dot_panel  # the instruction has whole registers
        if every is not None and every < vectors * lanes and not whole:
            wide = 1 << (every - 1).bit_length()
            lanes = min(lanes, max(NARROWEST, wide))
            vectors = max(1, wide // lanes)
        if self._has_wide_lines(lanes):
            rows = vectors = self.tuning.line_tile
        return RegisterTile(rows, vectors, lanes if integers is None else gcd(lanes, integers.panel))

    def _sums(self) -> tuple[str, str]:
        """How a tile sums, and the instruction that it needs."""
        shape, tile = self.shape, self.tile
        if shape.integers is not None:
            return "integers", needed_instruction(shape, self.target, tile, "integers")
        if shape.bytes is not None and shape.bytes.panel % tile.columns == 0:
            return "bytes", needed_instruction(shape, self.target, tile, "bytes")
        dot, is_exact = self.target.bf16_dot, shape.element == "f32" and shape.depth is not None
        if dot is not None and is_exact and shape.dot_panel and shape.dot_panel % tile.columns == 0:
            return "dot", needed_instruction(shape, self.target, tile, "dot")
        if shape.group is not None:
            return "groups", ""
        if can_fold(shape, tile, self._fold()):
            return "folded", ""
        is_word = shape.is_cast_bf16 and shape.element == "f32" and tile.vectors % 2 == 0 and self._is_packed()
        return ("words", "") if is_word and shape.buffers[0].is_padded(tile.columns) else ("fma", "")

    def _matrix(self) -> MatrixTile | None:
        """Where rows are enough, or of any number; of one height where that is known."""
        shape, tuning = self.shape, self.tuning
        least = tuning.matrix_least_bf16 if self.sums == "dot" else tuning.matrix_least
        if self.sums not in ("dot", "bytes", "integers") or not can_multiply_tiles(shape, self.target, self.tile):
            return None
        assert shape.matrix is not None
        words = words_at_once(shape.matrix.words)
        if not words or (shape.rows is not None and shape.rows < least):
            return None
        most = 2 * TILE_ROWS
        if shape.matrix.line:
            line = next(rows for rows in range(TILE_ROWS, 0, -1) if shape.matrix.line % rows == 0)
            fits = shape.rows is not None and shape.rows % line == 0 and line >= tuning.matrix_line
            return MatrixTile(2 * line, words, line, line) if fits else None
        if shape.rows is None or shape.rows <= most:
            return MatrixTile(most, words, least)
        even = (rows for rows in range(most, most - tuning.matrix_uneven - 1, -1) if shape.rows % rows == 0)
        return MatrixTile(next(even, most), words, least)

    def _splits_all(self) -> bool:
        """Whether all rows are split for tile registers; of a number that is known at run time, few are not."""
        return self.split is not None and self.split.always

    def _fold(self) -> int:
        """Steps of k that fill a vector whose columns are fewer than it has lanes."""
        return self.target.lanes() // self.tile.lanes

    def _is_packed(self) -> bool:
        return self.shape.is_packed(self.tile.columns)

    def _step_bytes(self) -> list[float]:
        """Of each packed operand, the bytes of a panel that a step of k reads."""
        columns = self.tile.columns
        packed = [(b.bits, b.steps_per_row(columns)) for b in self.shape.buffers]
        return [columns * bits / 8 / steps for bits, steps in packed if steps]

    def _reads_rows_once(self) -> bool:
        """Whether one tile each reads rows of a matrix that is not packed, more than are fetched ahead: keys and values."""
        shape, most = self.shape, self.tuning.fetch_bytes
        if self.sums == "folded":
            assert shape.depth is not None
            return shape.rows is None or shape.rows * shape.depth * 4 > most
        has_few = shape.rows is not None and shape.rows <= self.tile.rows and not shape.shared
        ahead = [steps for b in shape.buffers if (steps := b.steps_ahead(most))]
        return has_few and any(shape.depth is None or shape.depth > steps for steps in ahead)

    def _has_wide_lines(self, lanes: int) -> bool:
        """Whether a few rows by several vectors of a row of such a matrix fill a tile: it is read as it lies."""
        shape, size = self.shape, self.tuning.line_tile
        if shape.rows is None or shape.rows > size or shape.shared or self.target.vector_registers < self.tuning.many_registers:
            return False
        is_line = any(b.steps_ahead(self.tuning.fetch_bytes) for b in shape.buffers)
        return is_line and shape.columns is not None and shape.columns % (size * lanes) == 0 and shape.bits <= 32

    def _sums_at_once(self, most: int) -> int:
        """How many sums of so many fit the registers: half, where few registers hold words or zero points, too."""
        group, integers = self.shape.group, self.shape.integers
        holds = group is not None and (group.has_word or group.reads_invariant)
        holds |= integers is not None and integers.has_zero and not integers.is_word
        return most // 2 if holds and self.target.vector_registers < self.tuning.many_registers else most

    def _panels(self) -> int:
        """Panels that fill the accumulators of a tile of all rows, or of one, with iterations for threads to share."""
        shape, tile, tuning = self.shape, self.tile, self.tuning
        is_dot = self.sums == "dot"
        if shape.shared or shape.columns is None or not (is_dot or self._is_packed()):
            return 1
        is_wide = is_dot or any(size > LINE for size in self._step_bytes())
        rows = 1 if shape.rows is None else max(1, shape.rows)
        narrow_sums = tuning.integer_sums if self.sums == "integers" else tuning.accumulators
        sums = tuning.wide_sums if is_wide else narrow_sums
        if self.sums == "integers" and rows > 1:
            sums = max(sums, tuning.wide_sums)
        several = self._sums_at_once(sums // rows) // tile.vectors
        shared = shape.columns // (tuning.shared_iterations * tile.columns)
        if is_wide and shared < several:
            several = 1 << max(0, shared.bit_length() - 1)
        return several if 1 < several <= shared else 1

    def _scales_left(self) -> bool:
        """For words of few rows that a tile holds: all of them, or a single one where it is known at run time how many."""
        shape, group = self.shape, self.shape.group
        if group is None or not group.has_word or shape.element != "f32" or shape.depth is None:
            return False
        is_tile = self.panels > 1 if shape.rows is None else shape.rows <= self.tile.rows and not shape.shared
        return is_tile and (shape.rows or 1) * shape.depth * 4 <= self.tuning.stage_bytes

    def _group_unroll(self) -> int:
        """All steps of a word of high bits where each is masked in its place, else as many as registers are for."""
        steps = self.shape.group.word_steps if self.shape.group is not None and self._scales_left() else 0
        return max(self.tuning.group_unroll, steps)

    def _fetch(self) -> Fetch | None:
        tuning, tile = self.tuning, self.tile
        if self.sums == "dot":
            return Fetch(tuning.dot_fetch_rows, tuning.dot_fetch_bytes)
        if self.sums == "bytes":
            return Fetch(tuning.integer_fetch_rows, tuning.byte_fetch_bytes)
        if self.sums == "integers":
            return Fetch(tuning.integer_fetch_rows, tuning.integer_fetch_bytes)
        if self._reads_rows_once():
            return Fetch(1, tuning.fetch_bytes)
        rows = [ceil(size * tuning.fetch_busy / (tile.vectors * LINE)) for size in self._step_bytes()]
        return Fetch(min(rows), tuning.fetch_bytes) if rows and min(rows) <= tile.rows else None

    # -- a right factor that takes long, and a long k --------------------------------------------------------------

    def _is_long(self) -> bool:
        """Whether a vector of the right factor takes long, compared to a tile's multiply-adds, for a known number of steps."""
        shape = self.shape
        return shape.depth is not None and not shape.outer and shape.operations >= self.tuning.stage_operations

    def _tiles_before_staging(self) -> int:
        """How many tiles compute the right factor each for itself."""
        group = self.shape.group
        is_short = group is not None and not group.has_word and group.operations <= self.tuning.short_step
        return self.tuning.short_tiles if is_short else 1

    def _can_stage(self, depth: int) -> bool:
        return can_stage(self.shape, self.tile, depth, self.tuning)

    def _stage(self) -> Staging | None:
        shape = self.shape
        if not self._is_long() or self.sums == "integers" or shape.depth is None or self._splits_all():
            return None
        sizes = [*shape.shared, shape.rows]
        rows = None if None in sizes else prod(s for s in sizes if s is not None)
        whole = self._can_stage(shape.depth) and (rows is None or rows > self.few_rows)
        if not whole and self.blocks is None:
            return None
        in_tile = shape.has_rows and not shape.shared and shape.is_float
        return Staging(in_tile, self.few_rows if whole else None)

    def _blocks(self) -> Blocks | None:
        shape, tuning = self.shape, self.tuning
        takes_steps = self.sums != "integers" and (self._is_long() or self.sums != "groups") and self.matrix is None
        if not shape.has_rows or shape.shared or shape.outer or not takes_steps or self._splits_all():
            return None
        above = self.few_rows if self._is_long() else tuning.block_tiles * self.tile.rows
        if shape.depth is None or shape.depth <= tuning.block_longer or (shape.rows is not None and shape.rows <= above):
            return None
        depth = self._block_depth(shape.depth)
        if self._is_long() and not self._can_stage(depth):
            return None
        rows = self._block_rows()
        few = tuning.few_blocks if self._can_copy_left() and None in (shape.rows, shape.columns) else 0
        return Blocks(rows, self._block_columns(rows), depth, above, few)

    def _can_copy_left(self) -> bool:
        """Whether tiles could read rows from a copy: dot products have a way of their own to read pairs."""
        return self.sums != "dot"

    def _copies_left(self) -> bool:
        """Where enough panels read a copy; where each tile reads a computed right factor from the stack, half of these."""
        if self.blocks is None or not self._can_copy_left():
            return False
        least = self.tuning.copy_panels // 2 if self._is_long() else self.tuning.copy_panels
        return self.blocks.columns >= max(1, least) * self.tile.columns

    def _even_tile(self) -> RegisterTile:
        """Of one height where rows of a block are as many such tiles: code for blocks has each height three times.

        49 rows of 2048 x 512: seven tiles of 7 rows, not five of 8, one of 5 and one of 4.
        """
        tile, rows = self.tile, self.shape.rows
        if self.blocks is None or self.sums != "fma" or rows is None or rows != self.blocks.rows:
            return tile
        height = rows // -(-rows // tile.rows)
        fits = height * -(-rows // tile.rows) == rows and height * tile.vectors >= self.tuning.accumulators
        return replace(tile, rows=height) if fits else tile

    def _block_rows(self) -> int:
        """A multiple of a tile where there are several blocks, which are of similar height."""
        tile, most = self.tile.rows, self.tuning.block_rows
        if self.shape.rows is None:
            return most // tile * tile
        if self.shape.rows <= most:
            return self.shape.rows
        blocks = -(-self.shape.rows // (most // tile * tile))
        return -(-self.shape.rows // (blocks * tile)) * tile

    def _block_columns(self, height: int) -> int:
        """Half of the panels, and half of that, where there would be few blocks to share."""
        tuning, rows, columns, panel = self.tuning, self.shape.rows, self.shape.columns, self.tile.columns
        widths = [panels * panel for panels in tuning.block_panels]
        widths = [w for w in widths if height * w * self.shape.bits // 8 <= tuning.sums_bytes // 2] or widths[-1:]
        if not self._can_copy_left():
            widths = [w for w in widths if w < tuning.copy_panels * panel] or widths[-1:]
        if rows is None or columns is None:
            return widths[0]
        blocks = -(-rows // height)
        return next((w for w in widths if blocks * -(-columns // w) >= tuning.few_blocks), widths[-1])

    def _block_depth(self, k: int) -> int:
        """Steps of similar blocks; whole groups where these share a scale."""
        most, even, size = self._most_steps(), self.tuning.block_even, self.shape.group.size if self.shape.group else 0
        even = size if size % even == 0 and even < size <= most else even
        return -(-k // (-(-k // most) * even)) * even

    def _most_steps(self) -> int:
        """Steps of k of a panel that leaves half of the level-1 cache to others; of one that is computed, any."""
        most, tuning = self.tuning.block_depth, self.tuning
        if self._is_long():
            return most
        bits = max((b.bits for b in self.shape.buffers), default=self.shape.bits)
        return min(most, tuning.block_bytes * 8 // (self.tile.columns * bits))

    def _parts(self) -> Parts | None:
        """For more rows than a tile has, or any number, of tiles that need no more than the right factor as it is."""
        shape = self.shape
        height = self.tile.rows if self.matrix is None else self.matrix.rows
        is_tile = not shape.shared and (not shape.has_rows or (shape.rows is not None and shape.rows <= height))
        if is_tile or self.stage is not None or self.blocks is not None or self._splits_all():
            return None
        return Parts(self.tuning.part_rows, self.tuning.part_left, self.tuning.part_right)

    # -- threads -------------------------------------------------------------------------------------------------------

    def _threads(self) -> tuple[str, ...]:
        """Loops of enough iterations, where there is enough to do."""
        shape = self.shape
        if not self.target.openmp or not self._is_enough():
            return ()
        loops = [(batch_loop(i), size) for i, size in enumerate(shape.batch)]
        if self.blocks is not None or self.split is not None:
            loops.append((BLOCKS, None))
        if self.parts is not None:
            loops += [(PARTS, None), *([(COLUMNS, shape.columns)] if self.panels > 1 else [])]
        elif (self.blocks is None and not self._splits_all()) or shape.rows is None:
            columns = shape.columns if shape.columns is None or self.panels > 1 else shape.columns // self.tile.columns
            loops += [(COLUMNS, columns), *((shared_loop(i), size) for i, size in enumerate(shape.shared))]
            loops += [(ROWS, self._whole_tiles())] if shape.has_rows else []
        return tuple(name for name, size in loops if size is None or size >= self.tuning.shared_iterations)

    def _whole_tiles(self) -> int | None:
        """Whole tiles of rows that a loop goes through."""
        rows = self.shape.rows
        if rows is None:
            return None
        plan = ContractionPlan(self.tile, self.sums, matrix=self.matrix)
        if self.stage is not None and self.stage.in_tile and self.stage.above is not None:
            rows -= plan.first_height(rows)
        return (rows - sum(plan.low_heights(rows))) // plan.height

    def _is_enough(self) -> bool:
        shape = self.shape
        sizes = [shape.rows, shape.columns, shape.depth, *shape.batch, *shape.shared, *shape.outer]
        known = prod(size for size in sizes if size is not None)
        return None in sizes or max(1, known // self.tuning.work) >= ENOUGH_WORK
