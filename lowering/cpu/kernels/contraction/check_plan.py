"""Whether a plan fits a contraction and a target: what an edited one has to be for its kernel to be built, and to be right."""

from __future__ import annotations

from .....dialect.errors import RelaxError
from .....dialect.packed_layout import NIBBLES
from ....target import Target
from .contraction_plan import (
    BLOCKS,
    COLUMNS,
    PARTS,
    ROWS,
    Blocks,
    ContractionPlan,
    Parts,
    SplitTile,
    Staging,
    batch_loop,
    shared_loop,
)
from .matrix_shape import TILE_ROWS, TILE_WORDS
from .plan import can_fold, can_multiply_tiles, can_stage, needed_instruction
from .shape import ContractionShape
from .split_factors import TILE_STEPS
from .split_plan import F32_PARTS, can_split, right_parts, split_bytes
from .tuning import tuning_of

__all__ = ["check_plan"]


def check_plan(plan: ContractionPlan, shape: ContractionShape, target: Target) -> None:
    """Raises RelaxError, without a place, where the plan does not fit."""
    _Check(plan, shape, target).run()


class _Check:
    """The rules, each about some fields of a plan."""

    def __init__(self, plan: ContractionPlan, shape: ContractionShape, target: Target):
        self.plan, self.shape, self.target, self.tuning = plan, shape, target, tuning_of(target)

    def run(self) -> None:
        self._tile()
        self._unrolling()
        self._sums()
        self._panels()
        self._scaled_left()
        if self.plan.stage is not None:
            self._stage(self.plan.stage)
        if self.plan.blocks is not None:
            self._blocks(self.plan.blocks)
        if self.plan.parts is not None:
            self._parts(self.plan.parts)
        self._copied_left()
        self._matrix()
        if self.plan.split is not None:
            self._split(self.plan.split)
        self._joined()
        self._threads()

    def _tile(self) -> None:
        tile, bits = self.plan.tile, self.target.vector_bits
        for name, value in (("lanes", tile.lanes), ("vectors", tile.vectors)):
            _expect(_is_power(value), f"a power of two of {name}", f"tile={tile}")
        _expect(tile.lanes <= self.target.lanes(), f"at most {self.target.lanes()} lanes", f"tile={tile}")
        per_vector = max(1, -(-tile.lanes * self.shape.bits // bits))
        needed = (tile.rows * tile.vectors + 1) * per_vector + 1
        _expect(needed <= self.target.vector_registers, f"a tile of {self.target.vector_registers} registers", f"tile={tile}")

    def _unrolling(self) -> None:
        plan = self.plan
        for name in ("unroll", "group_unroll"):
            value: int = getattr(plan, name)
            _expect(_is_power(value) and value <= 64, "a power of two of at most 64 steps", f"{name.replace('_', '-')}={value}")
        for name in ("accumulators", "group_accumulators"):
            value = getattr(plan, name)
            fits = _is_power(value) and value <= self.target.vector_registers
            _expect(fits, "a power of two of accumulators that registers hold", f"{name.replace('_', '-')}={value}")

    def _sums(self) -> None:
        plan, shape, tile = self.plan, self.shape, self.plan.tile
        got = f"sums={plan.sums}"
        _expect((plan.sums == "integers") == (shape.integers is not None), f"sums of {self._kind()}", got)
        if plan.sums == "groups":
            _expect(shape.group is not None, "sums of what has groups", got)
            _expect(plan.blocks is None or plan.stage is not None, "blocks of sums that take some steps", got)
        if plan.sums == "bytes":
            fits = shape.bytes is not None and shape.bytes.panel % tile.columns == 0
            _expect(fits and plan.blocks is None, "neighbouring bytes in whole panels", got)
        if plan.sums == "words":
            fits = shape.is_cast_bf16 and shape.element == "f32" and tile.vectors % 2 == 0
            fits = fits and shape.is_packed(tile.columns) and shape.buffers[0].is_padded(tile.columns)
            _expect(fits, "words of bf16 in whole panels", got)
        if plan.sums == "dot":
            fits = shape.element == "f32" and shape.depth is not None
            fits = fits and shape.dot_panel > 0 and shape.dot_panel % tile.columns == 0
            _expect(fits and plan.stream_bytes > 0, "dot products of pairs of bf16 in whole panels", got)
        if plan.sums == "folded":
            fits = can_fold(shape, tile, plan.fold) and plan.fold * tile.lanes <= self.target.lanes() and plan.blocks is None
            _expect(fits and _is_power(plan.fold), "folded sums of all columns, several steps in a vector", got)
        if shape.integers is not None:
            panel = shape.integers.panel
            fits = panel % tile.lanes == 0 and (shape.columns is not None or panel % tile.columns == 0)
            _expect(fits, f"vectors inside of panels of {panel}", f"tile={tile}")
        expected = needed_instruction(shape, self.target, tile, plan.sums)
        given = plan.instruction in (("", expected) if plan.sums in ("integers", "bytes") else (expected,))
        _expect(given, f"instruction={expected}" if expected else "no instruction", f"instruction={plan.instruction}")

    def _kind(self) -> str:
        return "floats or integers as they are" if self.shape.integers is None else "integers that are scaled"

    def _panels(self) -> None:
        plan, shape, got = self.plan, self.shape, f"panels={self.plan.panels}"
        if plan.panels == 1:
            return
        _expect(not shape.shared and shape.columns is not None, "one panel at once where columns are unknown or rows many", got)
        rows = (1 if shape.rows is None else shape.rows) * plan.panels * plan.tile.vectors
        _expect(rows + 1 < self.target.vector_registers, f"panels for {self.target.vector_registers} registers", got)

    def _scaled_left(self) -> None:
        plan, shape = self.plan, self.shape
        if not plan.scaled_left:
            return
        rows = shape.rows if shape.rows is not None else 1
        fits = plan.sums == "groups" and shape.group is not None and shape.group.has_word and shape.element == "f32"
        steps = NIBBLES.count if shape.group is None else max(NIBBLES.count, shape.group.word_steps)
        fits = fits and not shape.shared and rows <= plan.tile.rows and plan.group_unroll % steps == 0
        fits = fits and rows * (shape.depth or 0) * 4 <= self.tuning.stage_bytes
        _expect(fits, "scaled rows where they are few, and of words", "scaled-left=yes")

    def _stage(self, stage: Staging) -> None:
        plan, shape, got = self.plan, self.shape, f"stage={stage}"
        _expect(plan.sums not in ("dot", "integers") and not shape.outer and shape.depth is not None, "no stage", got)
        if stage.in_tile:
            _expect(shape.has_rows and not shape.shared and shape.is_float, "stage=before, as there is no tile for it", got)
        if stage.above is None:
            _expect(plan.blocks is not None, "blocks to stage", got)
            return
        assert shape.depth is not None
        _expect(can_stage(shape, plan.tile, shape.depth, self.tuning), "a panel that fits the stack", got)

    def _blocks(self, blocks: Blocks) -> None:
        plan, shape, got = self.plan, self.shape, f"blocks={blocks}"
        takes_steps = plan.sums in ("fma", "words", "dot") or plan.stage is not None
        fits = shape.has_rows and not shape.shared and not shape.outer and takes_steps and shape.depth is not None
        _expect(fits, "no blocks", got)
        whole = blocks.rows % plan.tile.rows == 0 or blocks.rows == shape.rows
        _expect(whole and blocks.columns % plan.tile.columns == 0, f"blocks of tiles of {plan.tile}", got)
        _expect(blocks.depth % 2 == 0, "an even number of steps", got)
        fits = blocks.rows * blocks.columns * shape.bits // 8 <= self.tuning.sums_bytes
        _expect(fits, f"sums of at most {self.tuning.sums_bytes} bytes", got)
        if plan.stage is not None:
            assert shape.depth is not None
            depths = {min(blocks.depth, shape.depth), shape.depth % blocks.depth or blocks.depth}
            fits = all(can_stage(shape, plan.tile, depth, self.tuning) for depth in depths)
            _expect(fits and self._keeps_groups(blocks), "blocks of whole groups that fit the stack", got)

    def _copied_left(self) -> None:
        plan = self.plan
        fits = plan.blocks is not None and (plan.sums in ("fma", "words") or plan.stage is not None)
        _expect(fits or not plan.copied_left, "blocks whose rows can be copied", "copied-left=yes")

    def _parts(self, parts: Parts) -> None:
        plan, shape = self.plan, self.shape
        fits = (shape.has_rows or bool(shape.shared)) and plan.stage is None and plan.blocks is None
        _expect(fits, "no parts", f"parts={parts}")

    def _matrix(self) -> None:
        plan, shape, matrix = self.plan, self.shape, self.plan.matrix
        if matrix is None:
            return
        fits = can_multiply_tiles(shape, self.target, plan.tile) and plan.sums in ("dot", "bytes", "integers")
        fits = fits and plan.stage is None and plan.blocks is None
        _expect(fits, "no matrix, as tile registers multiply no such factors", f"matrix={matrix}")
        assert shape.matrix is not None
        fits = matrix.words <= TILE_WORDS and shape.matrix.words % matrix.words == 0 and matrix.rows <= 2 * TILE_ROWS
        fits = fits and (matrix.least <= plan.tile.rows + 1 or matrix.least == matrix.line)
        _expect(fits, "tiles of whole registers and steps", f"matrix={matrix}")
        fits = shape.rows is not None and shape.rows % matrix.line == 0 if matrix.line else not shape.matrix.line
        fits = fits and (not matrix.line or (matrix.rows == 2 * matrix.line and shape.matrix.line % matrix.line == 0))
        _expect(fits, "registers inside of lines", f"matrix={matrix}")

    def _split(self, split: SplitTile) -> None:
        plan, shape, blocks, got = self.plan, self.shape, split.blocks, f"split={split}"
        fits = can_split(shape, self.target, plan.tile) and plan.sums in ("fma", "words", "groups") and plan.matrix is None
        _expect(fits, "no split, as tile registers multiply no such factors", got)
        expected = f"{F32_PARTS}x{right_parts(shape)}"
        _expect(f"{split.left}x{split.right}" == expected, f"a split in {expected} parts", got)
        fits = blocks.rows % TILE_ROWS == 0 and blocks.columns % plan.tile.columns == 0 and plan.group_unroll % 2 == 0
        fits = fits and blocks.depth % TILE_STEPS == 0 and self._keeps_groups(blocks)
        _expect(fits, "a split in blocks of whole registers and groups", got)
        is_enough = not split.always or shape.rows is None or shape.rows > blocks.above
        _expect(is_enough, "a split for more rows than these", got)
        most = self.tuning.split_bytes
        _expect(split_bytes(split, plan.tile) <= most, f"a split in blocks of at most {most} bytes", got)

    def _joined(self) -> None:
        plan, shape = self.plan, self.shape
        fits = len(shape.shared) == 1 and shape.has_rows and plan.panels == 1 and plan.stage is None and plan.sums == "fma"
        fits = fits and shape.multiples.rows % plan.tile.rows == 0
        _expect(fits or not plan.joined, "rows of one shared loop that are a multiple of a tile's", "joined=yes")

    def _keeps_groups(self, blocks: Blocks) -> bool:
        """Whether no block begins inside of one group and ends inside of another."""
        size = 0 if self.shape.group is None else self.shape.group.size
        return not size or blocks.depth % size == 0 or size % blocks.depth == 0

    def _threads(self) -> None:
        plan, shape = self.plan, self.shape
        known = {COLUMNS, *([ROWS] if shape.has_rows else []), *([BLOCKS] if plan.blocks or plan.split else [])}
        known |= set() if plan.parts is None else {PARTS}
        known |= {batch_loop(i) for i in range(len(shape.batch))} | {shared_loop(i) for i in range(len(shape.shared))}
        for name in plan.threads:
            _expect(name in known, f"loops among {', '.join(sorted(known))}", f"threads={'+'.join(plan.threads)}")


def _is_power(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _expect(fits: bool, expected: str, got: str) -> None:
    if not fits:
        raise RelaxError(f"expected a plan with {expected}, got {got}")
