"""A class in, the same out if it is a pass: what packages of others register is checked here, not in the middle of a run."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, ClassVar, get_origin, get_type_hints

from ..errors import RelaxError
from .base import Pass
from .options import KINDS, options_of

__all__ = ["check_class"]


def check_class(found: object) -> type[Pass]:
    """The class, which is a pass whose options can be read.

    Raises:
        RelaxError: it is not derived from ``Pass``, has no ``name`` or no ``run``, is no dataclass though it has fields, or has
            fields of types that options cannot be of.
    """
    if not isinstance(found, type) or not issubclass(found, Pass):
        raise RelaxError(f"expected a class derived from Pass, got {found!r}")
    where = f"pass class {found.__qualname__} of module {found.__module__}"
    if not isinstance(getattr(found, "name", None), str):
        raise RelaxError(f"expected a text as 'name' of {where}, got {getattr(found, 'name', None)!r}")
    if inspect.isabstract(found):
        raise RelaxError(f"expected a method 'run' of {where}, got none")
    _check_fields(found, where)
    _ = options_of(found)  # read once, and kept
    return found


def _check_fields(found: type[Pass], where: str) -> None:
    try:
        hints = get_type_hints(found)
    except Exception as error:  # names that exist for type checkers only, and whatever annotations compute
        raise RelaxError(f"expected types of fields of {where} that can be read, got {type(error).__name__}: {error}") from None
    declared = {f.name for f in dataclasses.fields(found)}
    annotated = [n for c in found.__mro__ if c is not object for n in inspect.get_annotations(c) if not _is_constant(hints[n])]
    missing = next((name for name in annotated if name not in declared), None)
    if missing is not None:
        raise RelaxError(f"expected @dataclass(frozen=True) on {where}, which has the field '{missing}', got none")
    wrong = next((f.name for f in dataclasses.fields(found) if f.init and hints[f.name] not in KINDS), None)
    if wrong is not None:
        wanted = ", ".join(map(_type_text, KINDS))
        raise RelaxError(f"expected field '{wrong}' of {where} to be one of {wanted}, got {_type_text(hints[wrong])}")


def _is_constant(hint: Any) -> bool:
    return hint is ClassVar or get_origin(hint) is ClassVar


def _type_text(hint: Any) -> str:
    return hint.__name__ if type(hint) is type else str(hint)
