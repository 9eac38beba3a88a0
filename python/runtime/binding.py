"""Prepared weights for an executable: a file or mapping in, checked arrays out; raw or foreign weights are refused by name."""

from __future__ import annotations

from ..dialect.errors import RelaxError
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import RawSpec
from ..weights.arrays import Array
from ..weights.remote.places import Place, is_url
from .raw_weights import known_value
from .sources import AGAIN, WeightSource, open_source, problems_text, weight_problems

__all__ = ["check_bytes", "checked_prepared", "prepared_arrays"]


def prepared_arrays(manifest: Manifest, weights: object, verify: bool = False) -> dict[str, Array]:
    """The arrays to bind: views of a mapped file, or the mapping's own.

    Weights must carry the executable's fingerprint: a raw weight of the same name and shape is not a prepared one, and using it
    gives wrong numbers without an error (apache/tvm#17207). Only where preparation changes nothing may raw weights be bound.

    Raises:
        RelaxError: the weights are raw, prepared for another executable, damaged, or not exactly the expected tensors (all
            are listed).
    """
    source = checked_prepared(manifest, weights)
    names = list(manifest.prepared_weights)
    if source.fingerprint is not None or verify:
        check_bytes(source, names, verify)
    known = _known(manifest, source)
    return {name: known_value(known[name]) if name in known else source.get(name) for name in names}


def checked_prepared(manifest: Manifest, weights: object) -> WeightSource:
    """Prepared weights that look right, by all but their bytes. Raises as :func:`prepared_arrays`."""
    if isinstance(weights, str) and is_url(weights):
        raise RelaxError(
            f"'{Place(weights).name}': expected a file of this machine to map, got a URL: download it, or load_weights"
        )
    source = open_source(weights)
    if source.fingerprint is None and not manifest.is_identity:
        raise RelaxError(_raw_text(manifest, source))
    if source.fingerprint is not None and source.fingerprint != manifest.fingerprint:
        raise RelaxError(
            f"{source.description}: expected weights prepared for this executable (fingerprint {manifest.fingerprint[:12]}), "
            f"got weights prepared for another one (fingerprint {source.fingerprint[:12]}): {AGAIN}"
        )
    known = _known(manifest, source)
    problems = weight_problems({n: w for n, w in manifest.prepared_weights.items() if n not in known}, source)
    if source.fingerprint is not None:
        problems += [f"weight '{n}': expected none of this name, got one" for n in source if n not in manifest.prepared_weights]
    if problems:
        raise RelaxError(problems_text(source.description, problems, len(manifest.prepared_weights)))
    return source


def _known(manifest: Manifest, source: WeightSource) -> dict[str, RawSpec]:
    """Raw weights that the module knows, where raw weights are bound as they are."""
    return {} if source.fingerprint is not None else {n: w for n, w in manifest.raw_weights.items() if w.value is not None}


def check_bytes(source: WeightSource, names: list[str], whole: bool) -> None:
    """Compares weights with their checksums: all bytes, or the ends of some. Raises RelaxError with all that differ."""
    damaged = source.damaged(names, whole)
    if damaged:
        lines = [f"weight '{name}': expected the bytes that prepare wrote, got others: {AGAIN}" for name in damaged]
        raise RelaxError(problems_text(source.description, lines, len(names)))


def _raw_text(manifest: Manifest, source: WeightSource) -> str:
    names = list(source)
    raw = [n for n in names if n in manifest.raw_weights]
    got = f"raw weights such as '{raw[0]}'" if raw else f"{len(names)} tensors without a fingerprint"
    return (
        f"{source.description}: expected weights prepared for this executable (fingerprint {manifest.fingerprint[:12]}), "
        f"got {got}: call prepare with the raw weights first and bind its result"
    )
