"""The weights of a folder under the names that the model's parameters have, converted as transformers converts them."""

from __future__ import annotations

import copy
import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

import numpy as np
import torch
import transformers
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import Concatenate, MergeModulelist, WeightConverter, dot_natural_key, rename_source_key

from ..dialect.errors import RelaxError
from ..weights.arrays import Array, ArraySpec, to_numpy
from ..weights.formats.encoded import EncodedSource
from ..weights.source import DecodingSource, DerivedSource, Ranges, TensorSource, ranges_of, read_part, reads_parts

__all__ = ["FolderWeights", "apart", "file_names"]


@dataclass
class _Found:
    """What one of the model's weights, or several, are made of.

    Attributes:
        target: the name of the first of them.
        converter: what makes it of several tensors; None where it is one.
        keys: the tensors of the files.
        patterns: of the converter, which of its patterns each of them matched.
    """

    target: str
    converter: WeightConverter | None
    keys: list[str] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)

    def matrices(self, count: int) -> list[list[int]]:
        """The places of the keys of each of ``count`` matrices that lie one behind the other; none where it is not made so."""
        operations: list[Any] = [] if self.converter is None else self.converter.operations
        joins = [o.dim for o in operations if isinstance(o, MergeModulelist | Concatenate)]
        stacks = bool(operations) and isinstance(operations[0], MergeModulelist) and len(joins) == len(operations)
        if not stacks or joins[0] != 0 or 0 in joins[1:]:
            return []
        groups = [[i for i, p in enumerate(self.patterns) if p == pattern] for pattern in dict.fromkeys(self.patterns)]
        return list(map(list, zip(*groups, strict=True))) if {len(g) for g in groups} == {count} else []


class FolderWeights(DerivedSource):
    """A folder's tensors as a model's weights; a :class:`~relaxir.weights.source.TensorSource`.

    transformers renames keys of older checkpoints and joins experts, which are stored one by one, when it loads a folder. The
    same happens here, a weight at a time. Buffers that no file has come from the model, and so do positions that it computes.
    """

    def __init__(self, stored: TensorSource, model: PreTrainedModel, expected: Mapping[str, ArraySpec], prefix: str):
        """Finds what each weight is made of.

        Args:
            stored: the folder's tensors; of encoded ones, what :func:`~relaxir.weights.opening.decoded` makes of them.
            model: of the folder's configuration; its parameters are not read.
            expected: the weights of an executable.
            prefix: what their names have before the model's own.
        """
        super().__init__(stored)
        self._model, self._expected = model, expected
        found, ties = _found(stored, model), _tied(model)
        own = frozenset[str](getattr(stored, "all_names", ()))  # of encoded weights, which are in found, the files' tensors
        self._buffers = {prefix + n: b for n, b in model.named_buffers() if b.device.type != "meta"}
        self._found: dict[str, _Found] = {}
        self._stacks: dict[str, list[list[int]]] = {}
        self._targets: dict[str, str] = {}
        made = list[str]()
        for name in expected:
            plain = name.removeprefix(prefix)
            target = next((t for t in ties.get(plain, (plain,)) if t in found), None)
            if target is not None:
                self._found[name], self._targets[name] = found[target], target
            elif plain in own:
                self._found[name] = _Found(plain, None, [plain], [""])
            elif (computed := _computed(model, plain)) is not None:
                self._buffers[name] = computed
                made.append(name)
        if hasattr(type(stored), "serving"):  # isinstance would ask for all properties, such as the identity
            plain = {f.keys[0]: expected[n] for n, f in self._found.items() if f.converter is None}
            self._stored = cast("DecodingSource", stored).serving(plain)
        self._names = dict.fromkeys([*made, *self._all_names()])

    @property
    def path(self) -> str:
        return self._stored.path

    @property
    def metadata(self) -> Mapping[str, str]:
        return self._stored.metadata

    @property
    def files(self) -> list[str]:
        return self._stored.files

    @functools.cached_property
    def identity(self) -> str | None:
        """Changes with the files, with the configuration, and with transformers, whose conversions may be others."""
        own = self._stored.identity
        config = self._model.config.to_json_string(use_diff=False)
        return None if own is None else f"{own}\nas transformers {transformers.__version__} has it for {config}"

    @property
    def config(self) -> Mapping[str, Any]:
        """That of the folder, with what it leaves to its class: whether embeddings are tied."""
        tied = getattr(self._model.config, "tie_word_embeddings", None)
        return super().config if tied is None else {**super().config, "tie_word_embeddings": tied}

    def _all_names(self) -> dict[str, None]:
        used = {key for found in self._found.values() for key in found.keys}
        return dict.fromkeys([*self._found, *(k for k in self._stored if k not in used)])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._found or name in self._buffers

    def spec(self, name: str) -> ArraySpec:
        found = self._found.get(name)
        if found is None:
            return ArraySpec.of(self._buffer(name))
        return self._expected[name] if found.converter is not None else self._stored.spec(found.keys[0])

    def get(self, name: str) -> Array:
        found = self._found.get(name)
        if found is None:
            return self._buffer(name)
        if found.converter is None:
            return self._stored.get(found.keys[0])
        return self._converted(name, found, range(len(found.keys)))

    def read_part(self, name: str, ranges: Mapping[int, Ranges], place: Array | None = None) -> Array:
        """What is in ranges along some axes, as :meth:`relaxir.weights.source.RangedSource.read_part`."""
        found = self._found.get(name)
        if found is None:
            return ranges_of(self._buffer(name), ranges)
        if found.converter is None:
            return read_part(self._stored, found.keys[0], ranges, place)
        matrices, chosen = self._matrices(name), [i for begin, end in ranges.get(0, ()) for i in range(begin, end)]
        if not matrices or not chosen:
            return ranges_of(self.get(name), ranges)
        places = [matrices[i][group] for group in range(len(matrices[0])) for i in chosen]
        made = self._converted(name, found, places, len(chosen))
        return ranges_of(made, {axis: r for axis, r in ranges.items() if axis})

    def reads_parts(self, name: str) -> bool:
        """Whether a part of a tensor takes no more memory than its bytes, and what :meth:`beside` says."""
        found = self._found.get(name)
        if found is None or found.converter is not None:
            return found is not None and bool(self._matrices(name))
        return reads_parts(self._stored, found.keys[0])

    def beside(self, name: str, ranges: Mapping[int, Ranges] | None = None) -> int:
        """Memory beside the array: of what transformers joins, the tensors, and once more where matrices are joined, too."""
        found = self._found.get(name)
        if found is None:
            return 0
        if found.converter is None:
            beside = getattr(self._stored, "beside", None)
            return 0 if beside is None else beside(found.keys[0], ranges)
        wanted, operations = self._expected[name], len(found.converter.operations)
        whole = prod(wanted.shape) * wanted.dtype.itemsize
        if ranges and 0 in ranges and self._matrices(name):
            whole = whole // wanted.shape[0] * sum(end - begin for begin, end in ranges[0])
        return whole * operations

    def _matrices(self, name: str) -> list[list[int]]:
        """The places of the keys of each matrix of a tensor that transformers stacks; none of another."""
        if name not in self._stacks:
            shape = self._expected[name].shape
            self._stacks[name] = self._found[name].matrices(shape[0]) if shape else []
        return self._stacks[name]

    def _buffer(self, name: str) -> Array:
        buffer = self._buffers.get(name)
        if buffer is None:
            raise RelaxError(f"'{self.path}': expected a weight of the model, got {name!r}")
        return np.array(to_numpy(buffer.detach(), f"buffer '{name}'"), order="C")

    def _converted(self, name: str, found: _Found, places: Sequence[int], count: int | None = None) -> Array:
        """What transformers makes of several tensors, in the dtype that is wanted: NumPy's bf16 is none of torch's.

        Args:
            name: of the weight.
            found: what it is made of.
            places: which of these.
            count: how many matrices that are; None for all.
        """
        wanted, one = self._expected[name], copy.deepcopy(found.converter)
        assert one is not None
        # Of a part, what it is made of is let go of at once: a step may read all others behind it.
        self._touch(name, (found.keys[i] for i in places) if count is None else ())
        for key, pattern in ((found.keys[i], found.patterns[i]) for i in places):
            tensor = torch.from_numpy(np.array(self._stored.get(key), wanted.dtype, order="C"))
            one.add_tensor(found.target, key, pattern, tensor)  # pyright: ignore[reportArgumentType]: tensors are taken, too
            if count is not None:
                self._stored.release(key)
        try:
            made: Any = one.convert(found.target, model=self._model, config=self._model.config)[self._targets[name]]
        except Exception as error:  # what transformers' operations raise for shapes and counts that do not fit
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise RelaxError(
                f"'{self.path}': weight '{name}': expected tensors that transformers joins, got {reason}"
            ) from error
        array = np.asarray((made[0] if isinstance(made, list) else made).numpy(), order="C")
        expected = wanted if count is None else ArraySpec(wanted.dtype, (count, *wanted.shape[1:]))
        if array.shape != expected.shape:
            raise RelaxError(f"'{self.path}': weight '{name}': expected {expected}, got {ArraySpec.of(array)}")
        return array

    def _parts(self, name: str) -> list[str]:
        return self._found[name].keys if name in self._found else []


def file_names(stored: EncodedSource, model: PreTrainedModel, prefix: str) -> dict[str, str]:
    """What a folder calls the weights that a module has, and its own tensors, which a module that reads these has so, too.

    Args:
        stored: the folder's tensors.
        model: of the folder's configuration.
        prefix: what the module's names have before the model's own.
    """
    ties, names = _tied(model), {prefix + own: own for own in stored.all_names}
    for target, found in _found(stored, model).items():
        if found.converter is None:
            names |= {prefix + name: found.keys[0] for name in ties.get(target, (target,))}
    return names


def apart(stored: TensorSource, model: PreTrainedModel) -> list[str]:
    """The names in a folder of what the model has as one, and the folder as several that differ: transformers keeps these.

    Args:
        stored: the folder's tensors, or what :func:`~relaxir.weights.opening.decoded` makes of them.
        model: of the folder's configuration.
    """
    found, ties = _found(stored, model), _tied(model)
    keys = [[found[t].keys[0] for t in group if t in found and found[t].converter is None] for group in ties.values()]
    for first, *others in (list(dict.fromkeys(k)) for k in keys if k):
        if any(not np.array_equal(stored.get(first), stored.get(other)) for other in others):
            return [first, *others]
    return []


def _found(stored: Iterable[str], model: PreTrainedModel) -> dict[str, _Found]:
    """By the model's names, what in the files becomes each of them."""
    transforms = get_model_conversion_mapping(model)
    renamings: Any = [t for t in transforms if not isinstance(t, WeightConverter)]
    converters = [t for t in transforms if isinstance(t, WeightConverter)]
    by_pattern = {pattern: c for c in converters for pattern in c.source_patterns}
    names, found = model.state_dict(), dict[str, _Found]()
    for key in sorted(stored, key=dot_natural_key):
        target, pattern = rename_source_key(key, renamings, converters, model.base_model_prefix, names)
        one = found.setdefault(target, _Found(target, None if pattern is None else by_pattern[pattern]))
        one.keys.append(key)
        one.patterns.append(pattern or "")
    for one in list(found.values()):  # of a matrix that becomes several
        targets = [] if one.converter is None else one.converter.target_patterns
        found.update({one.target.replace(targets[0], other): one for other in targets[1:]})
    return found


def _computed(model: PreTrainedModel, name: str) -> torch.Tensor | None:
    """A parameter that no file has, as its module computes it: positions by sines, which Marian does not save."""
    place, _, last = name.rpartition(".")
    module: Any = dict(model.named_modules()).get(place)
    return module.create_weight() if last == "weight" and hasattr(module, "create_weight") else None


def _tied(model: PreTrainedModel) -> dict[str, list[str]]:
    """For each parameter all names that it has."""
    groups = defaultdict[int, list[str]](list)
    for name, parameter in model.named_parameters(remove_duplicate=False):
        groups[id(parameter)].append(name)
    return {name: group for group in groups.values() for name in group}
