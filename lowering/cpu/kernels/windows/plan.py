"""The plan of sums over windows: every choice that their kernel is built by, as data and as a line of text."""

from __future__ import annotations

from dataclasses import dataclass

from .....dialect.bindings import ir
from .....dialect.errors import RelaxError
from ....marks import PLAN
from ....plan_text import Reader, positive, print_fields, read_fields
from ....target import Target
from ..nest.nest_plan import is_nest_plan
from .shape import Windows

__all__ = ["WindowPlan", "checked_window_plan", "is_gainful", "widths_of"]

# Rows of the image that lie beside each other in a lane of 32 bits.
_QUAD = 4
# A window of less rows leaves half of each lane empty: taps one by one take as many instructions.
_ROWS = 3
# Vectors of less bytes than an instruction's are mostly empty.
_CHANNELS = 16
# So many places of the result make up for arranging the filters of a block of channels, which takes as long as one of them.
_PLACES = 64
# Channels of f32 from which on columns in registers are faster than loops over taps: half of a vector.
_HALF = 2
# Lines of images that threads share by channels. EfficientNet-B0, two threads, Zen 4: where they share parts of lines, of which
# there are few, it takes 1.06 of the time.
_SMALL = 16
# Vectors beside columns and sums: filters that are no memory operands, what columns are made of.
_OTHERS = 4


@dataclass(frozen=True)
class WindowPlan:
    """How sums over windows run.

    Attributes:
        channels: elements of a vector; what is left of the channels gets narrower ones.
        rows: rows of the result that are computed at once, of the same rows of the image.
        pixels: places in a row that a loop's iteration has.
        share: rows of the result for which filters are arranged once.
    """

    channels: int
    rows: int
    pixels: int
    share: int

    def __str__(self) -> str:
        return print_fields((name, getattr(self, name)) for name in _READERS)


_READERS: dict[str, Reader] = dict.fromkeys(("channels", "rows", "pixels", "share"), positive)
_EXAMPLES = dict.fromkeys(_READERS, "a positive number")


def checked_window_plan(windows: Windows, target: Target) -> WindowPlan | None:
    """The plan that stands on an operation, or the one it gets; None where loops over its taps are as fast.

    Raises:
        RelaxError: the plan does not fit, at the operation.
    """
    operation = windows.nest.operation
    best = _make(windows, target)
    if best is None or PLAN not in operation.attributes:
        return best
    text = ir.StringAttr(operation.attributes[PLAN]).value
    if is_nest_plan(text):
        return None
    try:
        plan = WindowPlan(**read_fields(text, _READERS, _EXAMPLES, tuple(_READERS)))  # type: ignore[arg-type]
        _check(plan, best, windows, target)
    except RelaxError as error:
        raise RelaxError(f"'{operation.name}' op {error}", operation.location) from None
    return plan


def is_gainful(window: tuple[int, int], channels: int, signs: tuple[bool, ...], target: Target) -> bool:
    """Whether sums over windows of so many rows and columns, of so many channels, get a kernel of their own.

    ``signs`` are those of :attr:`Windows.unsigned`.
    """
    height, width = window
    if not signs:
        return height >= _ROWS and channels * _HALF >= target.lanes() and width * height + _OTHERS <= target.vector_registers
    dots, dot = target.quad_dots, target.int8_dot
    if not dots or dot is None or height < _ROWS or channels < _CHANNELS:
        return False
    # An instruction takes the filters' bytes as they are; those of the image may get or lose a sign.
    return (dot.unsigned or not signs[1]) and (channels % min(dots) == 0 or target.masks_bytes)


def widths_of(signs: tuple[bool, ...], target: Target) -> list[int]:
    """Elements of a vector, widest first: as instructions for bytes have them, of floats down to four."""
    if signs:
        return sorted(target.quad_dots, reverse=True)
    lanes = target.lanes()
    return [lanes >> i for i in range(max(1, lanes.bit_length() - 2))]


def _make(windows: Windows, target: Target) -> WindowPlan | None:
    (_, width), channels, widths = windows.window, windows.channels, widths_of(windows.unsigned, target)
    if not is_gainful(windows.window, channels, windows.unsigned, target):
        return None
    rows = 2 if _most_rows(windows) > 1 and _registers(windows, 2) <= target.vector_registers else 1
    kept = windows.column_step is not None and windows.column_step < width
    wide = max(n for n in widths if n <= channels or n == min(widths))
    places = None if windows.x is None else windows.nest.extents[windows.x].static
    several = 1 if places is None else -(-_PLACES // max(1, places * rows))
    lines = None if windows.y is None else windows.nest.extents[windows.y].static
    share = rows * several if windows.unsigned or lines is None else _share_of_floats(lines, rows, several)
    return WindowPlan(wide, rows, width if kept else 1, share)


def _share_of_floats(lines: int, rows: int, several: int) -> int:
    """All lines of a small image, whose vectors of channels threads share then; else such that few lines are left."""
    if lines <= _SMALL:
        return -(-lines // rows) * rows
    even = [s for s in range(rows * several, 0, -rows) if lines % s == 0]
    return even[0] if even else rows * several


def _groups(rows: int) -> int:
    return -(-rows // _QUAD)


def _most_rows(windows: Windows) -> int:
    """How many rows of the result read rows of the image that fill no more lanes than those of one."""
    (height, _), step = windows.window, windows.row_step
    if not windows.unsigned:  # there are no lanes to fill, but two rows share what is between them
        return 2 if step is not None and step < height else 1
    return 1 if step is None else 1 + (_QUAD * _groups(height) - height) // step


def _registers(windows: Windows, rows: int) -> int:
    height, width = windows.window
    if not windows.unsigned:
        return width * (height + height + (rows - 1) * (windows.row_step or 0)) + rows + _OTHERS
    return _QUAD * (_groups(height) * width + rows) + _OTHERS


def _check(plan: WindowPlan, best: WindowPlan, windows: Windows, target: Target) -> None:
    widths = widths_of(windows.unsigned, target)
    if plan.channels not in widths:
        raise RelaxError(f"expected vectors of {', '.join(map(str, widths))} channels, got '{plan}'")
    if plan.rows > _most_rows(windows) or plan.share % plan.rows:
        raise RelaxError(f"expected at most {_most_rows(windows)} rows, and a multiple of them that share, got '{plan}'")
    if plan.pixels > 1 and best.pixels == 1:
        raise RelaxError(f"expected one pixel, as windows have no column in common, got '{plan}'")
