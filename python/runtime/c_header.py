"""A C header for an executable: the ABI in words and a declaration for every entry with its tensors in order."""

from __future__ import annotations

from ..dialect.extern_functions import library_text
from ..dialect.printable import printable
from ..lowering.c_prefix import prefix_of
from ..lowering.collective_call import ELEMENTS
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import EntrySpec
from ..lowering.tile_permission import TILE_FEATURES

__all__ = ["c_header"]

_ABI = """\
/* Compiled by relaxir. Every function has the same form:
 *
 *   int64_t f(void *const *tensors, const int64_t *symbols, void *arena, int64_t arena_bytes)
 *
 * tensors:  data pointers of inputs and state, then prepared weights, then outputs; contiguous, row-major, each element at its
 *           natural alignment; a boolean is one byte, 0 or 1.
 * symbols:  values of the symbolic dimensions, in the order below.
 * arena:    scratch memory, 64-byte aligned; may be NULL with arena_bytes 0.
 * returns:  0 when done; n > 0: nothing was done, call again with an arena of n bytes; -(i + 1): check i below failed;
 *           -(i + 1) - 2^32: it failed before anything was done.
 *           Texts of checks have values of expressions in braces.
 *           INT64_MIN: there is no memory for a buffer whose size depends on data.
 *           Of code compiled with checked=True, -(1 << 62): an access was outside of its buffer, and left the memory alone.
 *
 * State is read and updated in place; the caller gives it its first value. The functions keep nothing themselves and may run in
 * several threads at once, with a state each. Prepared weights come from
 * relaxir's `prepare` (a safetensors file whose metadata key relaxir.fingerprint must be the one below).
 */
"""

#: Of code for processors that have tile registers.
_TILES = """\
/* This code may use tile registers (AMX), which Linux gives a process that asks: the shared library does when it is loaded. A
 * program that links the object files itself calls syscall(SYS_arch_prctl, 0x1023, 18) once, before the first entry.
 */
"""

#: Of code that several processes run together.
_RANKS = """\
/* Several processes run this together, each with its own part of the weights. Entries take a fifth argument, by which they
 * talk: call gets kind 0 (all_reduce: out = sum of in over all ranks), 1 (all_gather: out = in of rank 0, of rank 1, ...) or
 * 2 (out[0] = this rank, an int64_t; in is to be ignored), the number of elements of in, and their type:
 * {types}.
 * It returns 0, or something else, which ends the entry with -(1 + 2^50).
 */
#ifndef RELAXIR_RANKS
#define RELAXIR_RANKS
struct relaxir_ranks {{
  int64_t (*call)(void *context, int64_t kind, const void *in, void *out, int64_t elements, int64_t element_type);
  void *context;
}};
#endif
"""

#: Of code that calls functions of other libraries.
_EXTERNS = """\
/* Functions of other libraries are called by the addresses that every function takes as its last argument, in this order:
 *
{functions}
 *
 * Each has the form
 *
 *   int32_t f(const DLTensor *inputs, int32_t n_inputs, DLTensor *outputs, int32_t n_outputs, ...)
 *
 * with DLTensor of DLPack (dlpack.h), and int64_t, double or const char * for what follows, none of it variadic. Tensors are
 * contiguous and row-major, and strides NULL. It writes the outputs, which are there, and nothing else; 0: done; any other
 * number ends the call with a check that names it.
 */
"""


def c_header(manifest: Manifest) -> str:
    """The header's text; C and C++ read it."""
    lines = [
        _ABI,
        "#pragma once",
        "#include <stdint.h>",
        "",
        f'#define {prefix_of(manifest).upper()}_FINGERPRINT "{_escaped(manifest.fingerprint)}"',
        "",
    ]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    more = ""
    if any(f"+{name}" in manifest.target.features.split(",") for name in TILE_FEATURES):
        lines.append(_TILES)
    if manifest.ranks > 1:
        lines.append(_RANKS.format(types=", ".join(f"{i} {name}" for i, name in enumerate(ELEMENTS))))
        more = ", const struct relaxir_ranks *ranks"
    if manifest.externs:
        places = [(e.symbol, _comment(library_text(e.library))) for e in manifest.externs]
        rows = [f" *   externs[{i}]: {symbol}, of {library}" for i, (symbol, library) in enumerate(places)]
        lines.append(_EXTERNS.format(functions="\n".join(rows)))
        more += ", void *const *externs"
    for entry in manifest.entries.values():
        lines += _declaration(entry, more)
    lines += ["#ifdef __cplusplus", "}", "#endif", ""]
    return "\n".join(lines)


def _declaration(entry: EntrySpec, more: str) -> list[str]:
    lines = [f"/* entry {_comment(entry.name)}"]
    for i, symbol in enumerate(entry.symbols):
        high = "any" if symbol.max is None else symbol.max
        lines.append(f" *   symbols[{i}]: {symbol.name}, from {symbol.min or 0} to {high}")
    taken = [(i, "input", s.name, str(s)) for i, s in zip(entry.input_positions, entry.inputs, strict=True)]
    taken += [(s.argument, "state", s.name, str(s.array)) for s in entry.state]
    rows = [row[1:] for row in sorted(taken)]
    rows += [("weight", w.name, str(w.array)) for w in entry.weights]
    rows += [("output", s.name, str(s)) for s in entry.outputs]
    lines += [f" *   tensors[{i}]: {kind} {_comment(name)}: {type_}" for i, (kind, name, type_) in enumerate(rows)]
    lines += [f" *   check {i}: {_comment(text)}" for i, text in enumerate(entry.checks)]
    arguments = "void *const *tensors, const int64_t *symbols, void *arena, int64_t arena_bytes" + more
    return [*lines, " */", f"int64_t {entry.symbol}({arguments});", ""]


def _comment(text: str) -> str:
    """Text that neither ends the comment it stands in nor seems to begin one."""
    return printable(text.replace("\\", "/")).replace("*/", "* /").replace("/*", "/ *")


def _escaped(text: str) -> str:
    return "".join(c for c in text if c.isalnum())
