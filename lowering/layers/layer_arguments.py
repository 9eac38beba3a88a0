"""Which arguments of a function are the same for its layers: weights, caches, as chains from the first to the last layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dialect.bindings import func, ir
from ...dialect.functions import NAME, num_input
from .repetition import ARGUMENT, LayerReads, Repetition

__all__ = ["LayerArguments", "chains_of"]


@dataclass(frozen=True)
class LayerArguments:
    """Chains of arguments, of which those of ``removed`` layers are not there for a while.

    Attributes:
        chains: numbers of arguments, per chain in the order of layers.
        kept: of each chain, how many are in front of the removed ones.
        removed: how many layers are not there.
        places: of the arguments that are there: the chain, and where in it without those removed.
    """

    chains: list[list[int]]
    kept: list[int]
    removed: int
    places: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, chains: list[list[int]], gone: set[int], removed: int) -> LayerArguments | None:
        """Those chains without the arguments ``gone``; None where these are not ``removed`` in each, one behind the other."""
        kept: list[int] = []
        places: dict[int, tuple[int, int]] = {}
        for number, chain in enumerate(chains):
            found = [i for i, argument in enumerate(chain) if argument in gone]
            if not found or found != list(range(found[0], found[0] + removed)):
                return None
            kept.append(found[0])
            left = [argument for argument in chain if argument not in gone]
            places |= {argument: (number, i) for i, argument in enumerate(left)}
        return cls(chains, kept, removed, places)

    def follows(self, one: int, other: int) -> bool:
        """Whether an argument is that of the next layer that is there."""
        here, there = self.places.get(one), self.places.get(other)
        return here is not None and there is not None and (here[0], here[1] + 1) == there

    def of_layer(self, argument: int, further: int) -> int:
        """What an argument is for the layer so many further, counted with those removed from where it is without them."""
        chain, place = self.places[argument]
        return self.chains[chain][place + further]

    def is_behind(self, argument: int) -> bool:
        """Whether an argument is one of a layer behind those removed."""
        chain, place = self.places.get(argument, (0, -1))
        return place >= self.kept[chain]

    def is_beside(self, argument: int) -> bool:
        """Whether an argument is one of the layer in front of those removed, or of the one behind."""
        found = self.places.get(argument)
        return found is not None and found[1] in (self.kept[found[0]] - 1, self.kept[found[0]])


def chains_of(function: func.FuncOp, block: LayerReads, found: Repetition) -> list[list[int]] | None:
    """The arguments that are read in each other's place from period to period; None where they do not make chains."""
    following: dict[int, int] = {}
    shared: set[int] = set()
    for number in range(found.first, found.last - found.period):
        for one, other in zip(block.reads[number], block.reads[number + found.period], strict=True):
            if one[0] != ARGUMENT:
                continue
            if one == other:
                shared.add(one[1])
            elif following.setdefault(one[1], other[1]) != other[1]:
                return None
    behind = set(following.values())
    if len(behind) < len(following) or shared & (behind | set(following)):
        return None
    chains = [_chain(start, following) for start in following if start not in behind]
    return chains if all(_alike(function, chain) for chain in chains) else None


def _chain(start: int, following: dict[int, int]) -> list[int]:
    chain = [start]
    while chain[-1] in following:
        chain.append(following[chain[-1]])
    return chain


def _alike(function: func.FuncOp, chain: Sequence[int]) -> bool:
    """Whether arguments are of one kind, whatever their names."""
    inputs = num_input(function) or 0
    attributes = function.attributes
    own = list(ir.ArrayAttr(attributes["arg_attrs"])) if "arg_attrs" in attributes else []
    kinds = {(n < inputs, tuple((a.name, a.attr) for a in ir.DictAttr(own[n]) if a.name != NAME) if own else ()) for n in chain}
    return len(kinds) == 1
