"""What expansions ask of a processor: which instructions it has."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Instructions"]


class Instructions(Protocol):
    """A target, as far as expansions depend on it: :class:`relaxir.lowering.target.Target` for one."""

    @property
    def has_fma(self) -> bool:
        """Whether a multiplication and an addition are one instruction."""
        ...

    @property
    def has_extremes(self) -> bool:
        """Whether the larger and the smaller of two numbers, NaN where one of them is, are one instruction."""
        ...

    @property
    def has_scalef(self) -> bool:
        """Whether x86's ``scalef`` multiplies vectors of f32 by powers of two."""
        ...

    @property
    def has_fast_doubles(self) -> bool:
        """Whether f64 takes about twice as long as f32, and not many times."""
        ...

    @property
    def rounds_to_integers(self) -> bool:
        """Whether f32 is rounded to even and converted to i32 by ``llvm.lrint``."""
        ...

    @property
    def has_f16(self) -> bool:
        """Whether f16 is converted by instructions."""
        ...

    @property
    def has_bf16(self) -> bool:
        """Whether bf16 is converted by instructions."""
        ...

    def lanes(self, bits: int = 32) -> int:
        """How many elements of that width a vector register holds."""
        ...
