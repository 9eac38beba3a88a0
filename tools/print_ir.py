"""What ``--mlir-print-ir-before``, ``-after`` and the flags beside them print around passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..dialect.errors import RelaxError
from ..dialect.passes.registry import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from .options import Options

__all__ = ["named_passes", "printing", "prints_around"]


def printing(options: Options) -> dict[str, Any]:
    """What ``PassManager.enable_ir_printing`` takes."""
    return {
        "print_before_all": options.mlir_print_ir_before_all,
        "print_after_all": options.mlir_print_ir_after_all,
        "print_module_scope": options.mlir_print_ir_module_scope,
        "print_after_change": options.mlir_print_ir_after_change,
        "print_after_failure": options.mlir_print_ir_after_failure,
        "large_elements_limit": options.mlir_elide_elementsattrs_if_larger,
        "large_resource_limit": options.mlir_elide_resource_strings_if_larger,
        "enable_debug_info": options.mlir_print_debuginfo,
        "print_generic_op_form": options.mlir_print_op_generic,
        "tree_printing_dir_path": options.mlir_print_ir_tree_dir,
    }


def named_passes(options: Options, is_pass: Callable[[str], bool]) -> tuple[set[str], set[str]]:
    """The passes that ``-before`` and ``-after`` name. Raises RelaxError for a name that no pass has."""
    before, after = ({*filter(None, t.split(","))} for t in (options.mlir_print_ir_before, options.mlir_print_ir_after))
    unknown = next((name for name in (*sorted(before), *sorted(after)) if not is_pass(name)), None)
    if unknown is not None:
        raise RelaxError(f"expected a pass to print the IR at, got '{unknown}'{suggestion(unknown)}")
    return before, after


def prints_around(options: Options, before: set[str], after: set[str]) -> Callable[[str], Mapping[str, Any] | None]:
    """Of a pass by its name, what is printed around it; None where nothing is."""
    given = printing(options)

    def prints(name: str) -> Mapping[str, Any] | None:
        first, last = given["print_before_all"] or name in before, given["print_after_all"] or name in after
        return {**given, "print_before_all": first, "print_after_all": last} if first or last else None

    return prints
