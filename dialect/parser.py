"""MLIR text in, a module out; what MLIR's own parser would crash on is refused before it gets there."""

from __future__ import annotations

import os
import re

import numpy as np

from .bindings import ir
from .conventions import check_module
from .errors import DiagnosticError, RelaxError, from_mlir_error

__all__ = ["MAX_NESTING", "parse_module"]

#: Brackets inside brackets that a module may have. MLIR's parser is recursive and its stack (8 MiB) overflows at about 3,000
#: nested regions and 15,000 nested attributes (torch-mlir 20261001); no real module comes near 100.
MAX_NESTING = 500

#: What a bytecode file begins with. Bytecode is refused: LLVM does not harden its reader against hostile input.
_BYTECODE = b"ML\xefR"
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_HIGH_ESCAPE, _ESCAPE = re.compile(r"\\[89A-Fa-f][0-9A-Fa-f]"), re.compile(rb"\\(?:\\|([0-9A-Fa-f]{2}))")
# Strings, comments and operators, in which brackets do not nest. Takes a tenth of the parser's own time.
_NOT_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|//[^\n]*|->|[<>]=')
_STRING_OR_COMMENT = re.compile(_STRING.pattern + r"|//[^\n]*")
_Places = np.ndarray[tuple[int], np.dtype[np.int64]]
_Levels = np.ndarray[tuple[int], np.dtype[np.int32]]
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"([{<")], _STEPS[list(b")]}>")] = 1, -1
# A result by its number, as ``%0#1``: MLIR's parser makes room for as many results before it looks whether they exist.
_RESULT_NUMBER = re.compile(rb"%[\w$.-]+#(\d{4,})")
# Places in structures: MLIR compares them with the number of fields in 64 bits, reads the field in 32 (torch-mlir 20261001).
_PLACE_OP = re.compile(rb"llvm\.(?:insert|extract)value\b")
_OWN_PLACES = re.compile(_PLACE_OP.pattern + rb"(?:\s*,?\s*%[\w$.#-]+){1,2}\s*(\[[^\]]*\])")
_PLACES = re.compile(rb"\bposition\s*=\s*(array<i64:[^>]*>|#[\w$.-]+)")
_NUMBER = re.compile(rb"(?<![\w#%!.])-?(?:0x[0-9A-Fa-f]+|\d+)")
# A resource with the bytes of its alignment, of which MLIR's reader asks for memory (torch-mlir 20261001).
_RESOURCE = re.compile(rb':\s*"0x([0-9A-Fa-f]{8})')
_MOST_ALIGNMENT = 1 << 16
# Where a statement's op begins, and which may have several blocks; so may one in its generic form, whose region is in
# parentheses.
_OP = re.compile(r"(?:^|[\n={}])\s*([a-z_]\w*(?:\.[\w$]+)+)")
_OWN_OP = re.compile(r"(?:^|[\n={}(])\s*(relax\.\w+)")
_OF_BLOCKS = ("func.func", "gpu.func", "llvm.func", "omp.loop_nest", "omp.parallel", "scf.execute_region")


def parse_module(
    text: str | bytes, source_name: str = "-", context: ir.Context | None = None, *, bytecode: bool = False
) -> ir.Module:
    """Reads a module in text form; without an enclosing ``module`` the operations are put into one.

    Args:
        text: MLIR text, bytes as UTF-8.
        source_name: the file name in locations and diagnostics.
        context: one with the dialect loaded (:func:`relaxir.dialect.context.new_context`); by default the current one.
        bytecode: whether it may be MLIR's bytecode, of a source that is trusted.

    Raises:
        DiagnosticError: the text does not parse or verify, or breaks our conventions; located at ``file:line:col``.
        RelaxError: this is no text: bytecode, not UTF-8, strings with escapes that are none, or brackets nested deeper than
            ``MAX_NESTING``, results with numbers that no op of a text of its length has, or places in structures that no
            structure has, or resources aligned to what is no power of two up to 64 KiB.
    """
    source_name = os.fsencode(source_name).decode(errors="replace")  # file names need not be text
    if not (bytecode and isinstance(text, bytes) and text.startswith(_BYTECODE)):
        text = _decoded(text, source_name)
        _check_code(text, source_name)
        _check_escapes(text, source_name)
    with context or ir.Context.current:
        try:
            module = ir.Module.parse(text)
        except RuntimeError:  # the diagnostic is made of what is no text
            raise DiagnosticError([("error", source_name, "expected MLIR's bytecode, got damaged bytecode")]) from None
        except ir.MLIRError as error:
            found = from_mlir_error(error)
            own = None if error.error_diagnostics or isinstance(text, bytes) else _own_form(text)
            raise _renamed(own or found, source_name) from None
        if isinstance(text, bytes):
            _check_escapes(module.operation.get_asm(large_elements_limit=16, large_resource_limit=16), source_name)
        elif source_name != "-":
            _relocate(module, source_name)
    check_module(module)
    return module


def _own_form(text: str) -> DiagnosticError | None:
    """What MLIR does not say: ops that IRDL defines have the generic form alone, and their parsers fail without a word."""
    code = _STRING_OR_COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    found = _OWN_OP.search(code)
    if not found:
        return None
    line, column = code.count("\n", 0, found.start(1)) + 1, found.start(1) - code.rfind("\n", 0, found.start(1))
    message = f'expected "{found[1]}"(...) : (...) -> (...), the only form of a relax op, got {found[1]}'
    return DiagnosticError([("error", f"-:{line}:{column}", message)])


def _decoded(text: str | bytes, source_name: str) -> str:
    if isinstance(text, str):
        return text
    if not isinstance(text, bytes | bytearray):
        raise RelaxError(f"expected MLIR text, got {type(text).__name__}")
    if text.startswith(_BYTECODE):
        raise RelaxError("expected MLIR text, got MLIR bytecode", source_name)
    try:
        return bytes(text).decode()
    except UnicodeDecodeError as error:
        raise RelaxError(f"expected UTF-8 text, got the byte {text[error.start]:#04x} at {error.start}", source_name) from None


def _check_code(text: str, source_name: str) -> None:
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise RelaxError("expected text without surrogates", source_name) from None
    code = _NOT_BRACKETS.sub(b"", raw)
    depth = _depth(code)
    if depth > MAX_NESTING:
        raise RelaxError(f"expected at most {MAX_NESTING} levels of nesting, got {depth}", source_name)
    for found in _RESULT_NUMBER.finditer(code):
        if len(found[1]) > 9 or int(found[1]) >= len(raw):  # each result of an op has a type in the text
            raise RelaxError(f"expected a result that an op has, got {found[0].decode()}", source_name)
    _check_places(raw, code, source_name)
    _check_resources(raw, source_name)
    _check_blocks(code, source_name)


def _check_places(raw: bytes, code: bytes, source_name: str) -> None:
    """Refuses places in structures from 2**31 on, at which MLIR reads beyond the fields when it infers types."""
    if not _PLACE_OP.search(raw):
        return
    lists = [*_OWN_PLACES.findall(code), *_PLACES.findall(code)]
    for alias in {text for text in lists if text.startswith(b"#")}:
        lists += re.findall(re.escape(alias) + rb"\s*=\s*(array<i64:[^>]*>)", code)
    for number in (n for text in lists for n in _NUMBER.findall(text)):
        if len(number) > 20 or abs(int(number, 16 if b"x" in number else 10)) >= 1 << 31:
            raise RelaxError(f"expected a place that a structure has, got {number[:30].decode()}", source_name)


def _check_resources(raw: bytes, source_name: str) -> None:
    """Refuses alignments at which MLIR ends the process, as it gets no such memory."""
    if b"dialect_resources" not in raw:
        return
    for found in _RESOURCE.finditer(raw, raw.rindex(b"dialect_resources")):
        alignment = int.from_bytes(bytes.fromhex(found[1].decode()), "little")
        if alignment.bit_count() != 1 or alignment > _MOST_ALIGNMENT:
            raise RelaxError(
                f"expected a resource aligned to a power of two up to {_MOST_ALIGNMENT}, got {alignment}", source_name
            )


def _check_blocks(code: bytes, source_name: str) -> None:
    """Refuses a second block in the region of an op that has one: MLIR's parser, when it fails there, frees values in use.

    What it frees stands for a name that another function uses and nobody defines (torch-mlir 20261001).
    """
    places = [m.start() for m in re.finditer(rb"\^", code)]
    if len(places) < 2:
        return
    at, levels = _brackets(code)
    index = np.searchsorted(at, places) - 1
    lowest = np.minimum.reduceat(levels, index)
    blocks, checked = list[int](), list[bool]()  # of regions that are open: how deep they are, whether one may have several
    for i, k in enumerate(index):
        level = int(levels[k])
        while blocks and blocks[-1] > min(lowest[i - 1], level):
            blocks.pop()
            checked.pop()
        if not blocks or blocks[-1] != level:
            blocks.append(level)
            checked.append(False)
        elif not checked[-1]:
            checked[-1] = True
            owner = _owner(code, at, levels, int(k))
            if owner is not None and owner not in _OF_BLOCKS:
                raise RelaxError(f"'{owner}' op expected one block in its region, got another one", source_name)


def _owner(code: bytes, at: _Places, levels: _Levels, k: int) -> str | None:
    """The op in whose region the bracket of this number is; None for one in its generic form, or none at all."""
    region = _opened(levels, k, levels[k])
    outside = _opened(levels, region - 1, levels[region] - 1)
    begin, end = int(at[outside]), int(at[region])
    if region == 0 or code[begin : begin + 1] == b"(":
        return None
    step = 1000
    while True:  # from the end on: what comes before may be long
        first = max(begin + 1, end - step)
        inside = levels[np.searchsorted(at, np.arange(first, end), "right") - 1] >= levels[region]
        names = _OP.findall(np.frombuffer(code, np.uint8)[first:end][~inside].tobytes().decode(errors="replace"))
        if names or first == begin + 1:
            return names[-1] if names else None
        step *= 4


def _opened(levels: _Levels, k: int, level: int) -> int:
    """The number of the bracket that opened this level, which is open behind the bracket ``k``; 0 where none is."""
    while k > 0 and levels[k - 1] >= level:
        k -= 1
    return max(k, 0)


def _check_escapes(text: str, source_name: str) -> None:
    """Refuses strings whose escapes (``"\\F0"``) are no UTF-8: the bindings cannot hand them to Python."""
    if not _HIGH_ESCAPE.search(text):
        return
    for string in _STRING.findall(text):
        raw = _ESCAPE.sub(lambda m: bytes([int(m[1] or b"5C", 16)]), string.encode())
        try:
            raw.decode()
        except UnicodeDecodeError:
            raise RelaxError(f"expected strings in UTF-8, got {string[:80]}", source_name) from None


def _brackets(code: bytes) -> tuple[_Places, _Levels]:
    """Where brackets are, and how many are open behind each; before them one that is none, at -1."""
    steps = _STEPS[np.frombuffer(code, np.uint8)]
    at = np.flatnonzero(steps)
    return np.concatenate(([-1], at)), np.concatenate(([0], np.cumsum(steps[at], dtype=np.int32)))


def _depth(code: bytes) -> int:
    """The deepest nesting of brackets; surplus closing ones do not hide what is opened after them."""
    _, levels = _brackets(code)
    return int(np.max(levels - np.minimum(np.minimum.accumulate(levels), 0)))


def _renamed(error: DiagnosticError, source_name: str) -> DiagnosticError:
    """The error with locations in ``-``, the name the bindings give to text, replaced by the real name."""
    found = [(s, re.sub(r"^-(?=:\d)", lambda _: source_name, where), text) for s, where, text in error.diagnostics]
    return DiagnosticError(found)


def _relocate(module: ir.Module, source_name: str) -> None:
    """Gives ops the name of the file they came from; the bindings cannot parse text under a name."""

    def move(location: ir.Location) -> ir.Location:
        if not isinstance(location, ir.FileLineColLoc) or location.filename != "-":
            return location
        return ir.Location.file(source_name, location.start_line, location.start_col)

    def visit(op: ir.Operation) -> ir.WalkResult:
        op.location = move(op.location)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_location(move(argument.location))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
