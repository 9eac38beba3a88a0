"""Which weights are cut, and how: what is decided for a module while its functions are looked through, as often as it changes.

A weight of a product that all ranks would compute alike is cut by columns; one whose rows meet the cut of what it is multiplied
with, by rows; what is added to parts, and a table that rows are taken from, as it fits. A demand on a value goes back to the
weights behind it, through ops that move or convert elements (:mod:`.weight_math_cuts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise

from ...bindings import ir
from ...cut import Cut
from ...inference import normalize_axis
from ...op import attrs_of, is_elementwise
from ...ops import Concat, PermuteDims
from ...struct_info import TensorInfo
from .cut_rules import is_one
from .weight_math_cuts import demands_of

__all__ = ["WeightCuts"]


@dataclass
class WeightCuts:
    """The decisions.

    Attributes:
        ranks: how many there are.
        keep: patterns of names of weights that stay whole.
        cuts: of weights and state, by name.
        whole: weights that stay whole, with the reason.
        borders: of weights whose cut needs borders between pieces, where.
        changed: whether a round through the functions has decided anything.
    """

    ranks: int
    keep: Sequence[str] = ()
    cuts: dict[str, Cut] = field(default_factory=dict[str, Cut])
    whole: dict[str, str] = field(default_factory=dict[str, str])
    borders: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    changed: bool = False
    _refined: bool = False

    def begin(self) -> None:
        """Begins a round through all functions."""
        self.changed = self._refined = False
        self._whole = dict(self.whole)

    def end(self) -> None:
        """Ends it. After one that found borders nothing else of it is kept: it went on with what had none."""
        if self._refined:
            self.cuts.clear()
            self.whole = self._whole
            self.changed = True

    def demand(
        self, value: ir.Value, axis: int, pieces: tuple[int, ...] | None, names: Mapping[ir.Value, str]
    ) -> dict[ir.Value, Cut] | None:
        """The cuts of a value, and of what it is made from, if it can be cut so.

        Args:
            value: it comes from weights alone.
            axis: the dimension.
            pieces: sizes; None for what is best.
            names: those of arguments that are weights.

        Returns:
            The cuts by value, that of ``value`` among them; None, and why as :attr:`whole`, where it is not cut.
        """
        found: dict[ir.Value, Cut] = {}
        if self._demand(value, axis, pieces, names, found) is None:
            for name in _weights_behind(value, names):
                if name not in self.whole and name not in self.cuts and value not in names:
                    self._refused(
                        name, f"{self.ranks} ranks cannot share axis {axis} of what is made of it, in whole words and groups"
                    )
            return None
        for part, cut in found.items():
            if part in names:
                self.choose(names[part], cut)
        return found

    def choose(self, name: str, cut: Cut) -> None:
        """Cuts a weight or state."""
        if self.cuts.get(name) != cut:
            self.cuts[name], self.changed = cut, True

    def refuse(self, name: str, reason: str) -> None:
        """Leaves a weight or state whole from now on."""
        if name not in self.whole or name in self.cuts:
            self.changed |= name in self.cuts
            self.whole[name] = reason
            self.cuts.pop(name, None)

    def refine(self, name: str, size: int, borders: Sequence[int]) -> None:
        """Has more borders between pieces of a weight in the next round, where ranks can share the pieces."""
        more = tuple(sorted({*self.borders.get(name, ()), *(b for b in borders if 0 < b < size)}))
        if more == self.borders.get(name, ()) or any(p % self.ranks for p in _between(more, size)):
            return
        self.borders[name] = more
        self._refined = True

    def _demand(
        self, value: ir.Value, axis: int, pieces: tuple[int, ...] | None, names: Mapping[ir.Value, str],
        found: dict[ir.Value, Cut],
    ) -> Cut | None:  # fmt: skip
        if value in names:
            cut = self._of_weight(names[value], TensorInfo.of(value).shape[axis], axis, pieces)
        elif isinstance(value.owner, ir.Block):
            cut = None
        else:
            cut = self._of_result(value, axis, pieces, names, found)
        if cut is None or found.setdefault(value, cut) != cut:
            return None
        return cut

    def _of_weight(self, name: str, size: object, axis: int, pieces: tuple[int, ...] | None) -> Cut | None:
        known = self.cuts.get(name)
        if known is not None:
            return known if known.axis == axis and pieces in (None, known.pieces) else None
        if name in self.whole or not isinstance(size, int):
            return None
        if any(fnmatchcase(name, pattern) for pattern in self.keep):
            return self._refused(name, "as 'keep' says")
        wanted = _between(self.borders.get(name, ()), size) if pieces is None else pieces
        if not size or sum(wanted) != size or any(p % self.ranks for p in wanted):
            return self._refused(name, f"{self.ranks} ranks cannot share {size} of axis {axis}")
        return Cut(axis, wanted)

    def _refused(self, name: str, reason: str) -> None:
        self.whole.setdefault(name, reason)

    def _of_result(
        self, value: ir.Value, axis: int, pieces: tuple[int, ...] | None, names: Mapping[ir.Value, str],
        found: dict[ir.Value, Cut],
    ) -> Cut | None:  # fmt: skip
        op = value.owner.opview
        if isinstance(op, PermuteDims):
            rank, axes = TensorInfo.of(value).rank, attrs_of(op)["axes"]
            inner = rank - 1 - axis if axes is None else normalize_axis(axes[axis], rank)
            cut = self._demand(op.x, inner, pieces, names, found)
            return None if cut is None else Cut(axis, cut.pieces)
        if isinstance(op, Concat) and normalize_axis(op.axis, TensorInfo.of(value).rank) == axis:
            return self._of_concat(op, axis, pieces, names, found)
        size = TensorInfo.of(value).shape[axis]
        wanted = (size,) if pieces is None and isinstance(size, int) else pieces
        cut = None if wanted is None else Cut(axis, wanted)
        demands = None if cut is None else demands_of(op, cut, self.ranks)
        if demands is not None and cut is not None:
            return self._of_demands(demands, cut, names, found)
        if not is_elementwise(op):
            return None
        return self._of_elementwise(op, axis, pieces, names, found)

    def _of_demands(
        self, demands: Sequence[tuple[ir.Value, Cut]], cut: Cut, names: Mapping[ir.Value, str], found: dict[ir.Value, Cut]
    ) -> Cut | None:
        got = [self._demand(value, own.axis, own.pieces, names, found) for value, own in demands]
        return cut if demands and None not in got else None

    def _of_concat(
        self, op: Concat, axis: int, pieces: tuple[int, ...] | None, names: Mapping[ir.Value, str], found: dict[ir.Value, Cut]
    ) -> Cut | None:
        left, right, size = op.lhs, op.rhs, TensorInfo.of(op.lhs).shape[axis]
        if normalize_axis(attrs_of(op)["axis"], TensorInfo.of(left).rank) != axis or not isinstance(size, int):
            return None
        first, second = (None, None) if pieces is None else _parted(pieces, size)
        if pieces is not None and first is None:
            return None
        cuts = [self._demand(v, axis, p, names, found) for v, p in ((left, first), (right, second))]
        return None if None in cuts else Cut(axis, tuple(p for c in cuts if c for p in c.pieces))

    def _of_elementwise(
        self, op: ir.OpView, axis: int, pieces: tuple[int, ...] | None, names: Mapping[ir.Value, str],
        found: dict[ir.Value, Cut],
    ) -> Cut | None:  # fmt: skip
        rank = TensorInfo.of(op.results[0]).rank
        cut = None
        for operand in op.operands:
            if is_one(operand, axis - rank):
                continue
            own = self._demand(operand, axis - rank + TensorInfo.of(operand).rank, pieces, names, found)
            if own is None:
                return None
            pieces, cut = own.pieces, Cut(axis, own.pieces)
        return cut


def _between(borders: Sequence[int], size: int) -> tuple[int, ...]:
    places = [0, *borders, size]
    return tuple(b - a for a, b in pairwise(places))


def _parted(pieces: tuple[int, ...], size: int) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """The pieces up to a place and those behind it, None where it is no border."""
    total = 0
    for i, piece in enumerate(pieces):
        if total == size:
            return pieces[:i], pieces[i:]
        total += piece
    return None, None


def _weights_behind(value: ir.Value, names: Mapping[ir.Value, str]) -> list[str]:
    """The weights that a value is made of."""
    found, pending, seen = list[str](), [value], set[ir.Value]()
    while pending:
        part = pending.pop()
        if part in seen:
            continue
        seen.add(part)
        if part in names:
            found.append(names[part])
        elif not isinstance(part.owner, ir.Block):
            pending += part.owner.operands
    return found
