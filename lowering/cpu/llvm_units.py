"""The text of an LLVM module as units that are compiled apart: kernels and loops, each alone, and all that calls them.

A kernel has one text in every module: it is called by a digest of it, its constants without names, attributes and metadata are
counted from 0, and what it calls is declared by name. So one that was compiled for a model is there for the next.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable, KeysView, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

__all__ = ["MAIN", "Unit", "has_loop", "units_of"]

#: The name of the unit that has the functions which are called from outside.
MAIN = "main"

# Patterns begin with characters, which are looked for at once, and go by lines: ResNet-50's 1.7 MB take 30 ms, where looking
# behind and lazy repetitions took 118.
_DEFINITION = re.compile(r"^define [^\n]*\n(?:[^}\n][^\n]*\n|\n)*}\n", re.M)
_DEFINED = re.compile(r"^define [^@]*@([\w.$-]+)\(")
_SYMBOL = re.compile(r"@([\w.$-]+)")
_ATTRIBUTES = re.compile(r" #(\d+)\b")
_METADATA = re.compile(r"!(\d+)\b")
_NAMED_ARGUMENT = re.compile(r" %[\w.]+([,)])")
_TYPE = re.compile(r"%([A-Za-z][\w.]*)")
# Bytes of a constant, which mean nothing here: a GPU's code, for one, has what looks like names and numbers.
_BYTES = re.compile(r' c("[^"]*")')

# Where a function begins; where one of its blocks does; where one is branched to.
_BRANCH = re.compile(r"^(define )|^([\w.$-]+):|label %([\w.$-]+)", re.M)

# Translation calls the regions that threads share after their function.
_REGION = "..omp_par"
_DIGITS = 32


@dataclass(frozen=True)
class Unit:
    """A part of a module.

    Attributes:
        name: :data:`MAIN`, or the symbol of its kernel, or its loop, which says what is in ``text``.
        text: LLVM IR, complete.
        functions: of a kernel, how the module calls it; several where it has equal ones.
    """

    name: str
    text: str
    functions: tuple[str, ...] = ()

    @property
    def is_kernel(self) -> bool:
        return self.name != MAIN


def units_of(text: str) -> list[Unit]:
    """The units of a module as LLVM or MLIR prints it, the one of the functions that are called from outside first."""
    bytes_ = {f'"{hashlib.sha256(found.encode()).hexdigest()}"': found for found in _BYTES.findall(text)}
    digests = {found: digest for digest, found in bytes_.items()}
    module = _Module(_BYTES.sub(lambda m: " c" + digests[m[1]], text))
    kernels = module.kernels()
    units, symbols = dict[str, Unit](), dict[str, str]()
    for root, functions in kernels.items():
        unit = _kernel_unit(module, root, functions)
        same = units.get(unit.name)
        units[unit.name] = replace(unit, functions=(*(same.functions if same else ()), root))
        symbols[root] = unit.name
    apart = {name for functions in kernels.values() for name in functions}
    rest = [_renamed(d, symbols) for n, d in module.definitions.items() if n not in apart]
    made = {symbols[n]: _declaration(module.definitions[n], symbols) for n in kernels}
    declared, used = module.linked | made, _used(rest)
    main = Unit(MAIN, module.complete(rest, [declared[n] for n in sorted(declared) if n in used], own=True))
    return [replace(u, text=_BYTES.sub(lambda m: " c" + bytes_[m[1]], u.text)) for u in (main, *units.values())]


class _Module:
    """The top level of a module's text by kind.

    Attributes:
        definitions: the functions by name.
        linked: the declarations of kernels that were compiled for another module, by name.
    """

    def __init__(self, text: str):
        found = _DEFINITION.findall(text)
        self.definitions = {_defined(d): d for d in found}
        rest = [line for line in _DEFINITION.sub("", text).splitlines() if line and not line.startswith(";")]
        self._constants = {_SYMBOL.findall(n)[0]: n for n in rest if n.startswith("@")}
        self._declared = {_SYMBOL.findall(n)[0]: n for n in rest if n.startswith("declare ")}
        self.linked = {name: line for name, line in self._declared.items() if line.startswith("declare hidden ")}
        self._types = {_TYPE.findall(n)[0]: n for n in rest if n.startswith("%")}
        self._attributes = {n.split()[1][1:]: n.split(" = ", 1)[1] for n in rest if n.startswith("attributes #")}
        self._metadata = {n[1 : n.index(" ")]: n.split(" = ", 1)[1] for n in rest if n.startswith("!")}
        known = ("@", "declare ", "%", "attributes #", "!", "source_filename", "target ")
        self._other = [line for line in rest if not line.startswith(known)]

    def kernels(self) -> dict[str, list[str]]:
        """The functions that need none of the others but their own regions, with these; regions of other functions alone."""
        if self._other:
            return {}
        regions: dict[str, list[str]] = {}
        for name in self.definitions:
            regions.setdefault(name.partition(_REGION)[0], []).append(name)
        users: dict[str, set[str]] = {}
        for name, text in (*self.definitions.items(), *self._constants.items()):
            for used in _names(text):
                users.setdefault(used, set()).add(name)
        found: dict[str, list[str]] = {}
        for root, own in regions.items():
            if self._is_apart(root, own, users):
                found[root] = own
            else:
                found |= {n: [n] for n in own if n != root and self._is_apart(n, [n], users)}
        return found

    def _is_apart(self, root: str, own: list[str], users: Mapping[str, set[str]]) -> bool:
        if root not in own or not all(self.definitions[n].startswith("define internal ") for n in own):
            return False
        if any(not users.get(n, set()) <= set(own) for n in own if n != root):
            return False
        return all(n in own or self._is_shared(n) for n in _used(self.definitions[n] for n in own))

    def _is_shared(self, name: str) -> bool:
        """Whether a name means the same in every unit: a function from outside, a constant that may be there twice."""
        text = self._constants.get(name)
        if text is None:
            return name in self._declared and name not in self.linked
        return bool(re.search(r" = (private|internal) unnamed_addr constant ", text)) and all(
            self._is_shared(used) for used in _names(text) - {name}
        )

    def complete(self, definitions: list[str], declared: list[str], own: bool = False) -> str:
        """A module of these functions, with what they use; ``own`` for one with the constants that are seen from outside."""
        constants = self._constants_of(definitions, own)
        used = _used(definitions)
        outside = [n for name, n in sorted(self._declared.items()) if name in used and name not in self.linked]
        # LLVM wants what has no name in the order of its numbers.
        numbers = {name: str(i) for i, name in enumerate(n for n in constants if n.isdecimal())}
        lines = [*constants.values(), "", *declared, *outside, "", *definitions]
        body = "\n".join(_renamed(line, numbers) if numbers else line for line in lines)
        types = [line for name, line in self._types.items() if f"%{name}" in body]
        return "\n".join([*types, self._counted_anew(body)])

    def _constants_of(self, definitions: list[str], own: bool) -> dict[str, str]:
        """Those that are needed, by name, in the order in which they are read first."""
        kept = [name for name, n in self._constants.items() if own and not re.search(r" = (private|internal) ", n)]
        pending = deque([*_used(definitions), *kept])
        found: dict[str, str] = {}
        while pending:
            name = pending.popleft()
            if name in self._constants and name not in found:
                found[name] = self._constants[name]
                pending += _used([found[name]])
        return found

    def _counted_anew(self, body: str) -> str:
        """With attributes and metadata behind it, in the order in which they are used."""
        attributes = {n: str(i) for i, n in enumerate(dict.fromkeys(_ATTRIBUTES.findall(body)))}
        metadata = list(dict.fromkeys(_METADATA.findall(body)))
        for number in metadata:  # grows
            metadata += [n for n in dict.fromkeys(_METADATA.findall(self._metadata[number])) if n not in metadata]
        nodes = {n: str(i) for i, n in enumerate(metadata)}
        lines = [f"attributes #{new} = {self._attributes[old]}" for old, new in attributes.items()]
        lines += [f"!{new} = {_METADATA.sub(lambda m: '!' + nodes[m[1]], self._metadata[old])}" for old, new in nodes.items()]
        body = _ATTRIBUTES.sub(lambda m: " #" + attributes[m[1]], body)
        return "\n".join([_METADATA.sub(lambda m: "!" + nodes[m[1]], body), *lines, ""])


def has_loop(text: str) -> bool:
    """Whether a function of a module, as LLVM prints it, comes to one of its blocks again."""
    graphs: list[dict[str, set[str]]] = []
    block = set[str]()
    for begin, label, target in _BRANCH.findall(text):
        if begin:
            block = set()
            graphs.append({begin: block})
        elif label:
            block = graphs[-1].setdefault(label, set())
        else:
            block.add(target)
    try:
        for graph in graphs:
            TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False


def _kernel_unit(module: _Module, root: str, functions: list[str]) -> Unit:
    local = {root: "kernel", **{n: f"kernel.{i}" for i, n in enumerate(n for n in functions if n != root)}}
    texts = [_renamed(module.definitions[n], local) for n in functions]
    texts[functions.index(root)] = texts[functions.index(root)].replace("define internal ", "define hidden ", 1)
    complete = module.complete(texts, [])
    symbol = f"kernel.{hashlib.sha256(complete.encode()).hexdigest()[:_DIGITS]}"
    return Unit(symbol, _renamed(complete, {"kernel": symbol}))


def _defined(definition: str) -> str:
    found = _DEFINED.match(definition)
    assert found is not None, definition[:100]
    return found[1]


def _declaration(definition: str, symbols: Mapping[str, str]) -> str:
    head = definition[: definition.index("{\n")]
    line = _NAMED_ARGUMENT.sub(r"\1", " ".join(head.split()))
    return _renamed(line[: line.rindex(")") + 1].replace("define internal ", "declare hidden ", 1), symbols)


def _renamed(text: str, symbols: Mapping[str, str]) -> str:
    return _SYMBOL.sub(lambda m: "@" + symbols.get(m[1], m[1]), text)


def _names(text: str) -> set[str]:
    return set(_SYMBOL.findall(text))


def _used(texts: Iterable[str]) -> KeysView[str]:
    """The symbols in these texts, in order."""
    return dict.fromkeys(name for text in texts for name in _SYMBOL.findall(text)).keys()
