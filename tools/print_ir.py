"""Pipelines that print the IR at some passes: ``--mlir-print-ir-before`` and ``--mlir-print-ir-after``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ..dialect.passes.pipeline_text import Element, parse_pipeline

__all__ = ["with_prints"]


def with_prints(text: str, before: Collection[str], after: Collection[str]) -> str:
    """A pipeline with MLIR's ``print-ir`` at passes of these names, wherever they are nested."""
    return text if not before and not after else ",".join(_printing(parse_pipeline(text), before, after))


def _printing(elements: Iterable[Element], before: Collection[str], after: Collection[str]) -> Iterator[str]:
    for element in elements:
        if element.nested is not None:
            yield f"{element.name}({','.join(_printing(element.nested, before, after))})"
            continue
        if element.name in before:
            yield f'print-ir{{label="Before {element.name}"}}'
        yield element.text
        if element.name in after:
            yield f'print-ir{{label="After {element.name}"}}'
