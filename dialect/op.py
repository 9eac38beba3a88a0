"""The layer on which ops are defined: declared attributes, shape inference, verification and a fast builder.

An op is a class: operands and results as annotations, attributes as :class:`Attr` declarations, and one function that
infers the results. Verification is that same function: what it refuses is reported at the op, what it infers must agree
with the result types written in the IR::

    class PermuteDims(Op, name="permute_dims"):
        \"\"\"Reorders dimensions.\"\"\"

        x: Operand[Tensor]
        result: Result[Tensor]
        attrs = {"axes": attributes.integers(default=None)}

        @staticmethod
        def infer(operands, attrs):
            (x,) = operands
            ...
            return x.with_(shape=...)

IRDL gives every element of a variadic group one type, so an op has fixed operands or one homogeneous group; a group that is
alone needs no segment sizes. Where operands differ in type, and in number, each is an optional group of its own,
filled from the first one on (:mod:`.ops.extern`); how many there are then is in the segment sizes.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any, TypeAlias, cast

from .attributes import REQUIRED, Attr
from .bindings import Operand, Result, ext, ir, irdl
from .dim_ties import BROADCAST, Tie, Ties
from .errors import RelaxError
from .image_rules import ImageRule
from .op_costs import per_element
from .op_groups import Group, Tensor, add_accessors, results_of
from .relax import Relax
from .struct_info import TensorInfo, same_info, vdevice_of, with_vdevice

__all__ = [
    "VDEVICES", "Attrs", "DefiningOp", "EffectOp", "Narrow", "Op", "Operand", "Result", "SymbolicOp", "Tensor", "attrs_of",
    "groups_of", "grows_from", "is_elementwise", "op_class", "ties_of", "verifying_once",
]  # fmt: skip

Attrs: TypeAlias = Mapping[str, Any]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")

#: The module attribute that lists its virtual devices.
VDEVICES = "relax.vdevices"

_VERIFIED: ContextVar[set[tuple[Any, ...]] | None] = ContextVar("relaxir_verified", default=None)


@contextmanager
def verifying_once() -> Generator[None]:
    """While it lasts, an op that has the class, types and attributes of one that verified is not checked again.

    Pipelines verify after every pass: compiling 16 layers of Llama asks for 9,000 checks, of which this leaves 1,200. What is
    remembered keeps its MLIR context alive, and so ends with the block. In another such block, that one's memory goes on.
    """
    token = _VERIFIED.set(set()) if _VERIFIED.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _VERIFIED.reset(token)


class Narrow(Enum):
    """Whether an op computes on floats narrower than f32, after TVM's ToMixedPrecision and PyTorch's autocast."""

    #: In f32 alone.
    NEVER = "never"
    #: Where what it reads is narrow: that adds at most one rounding, or none where it only moves or compares elements.
    FOLLOWS = "follows"
    #: Worth a cast of what it reads. One with ``out_dtype`` can return its f32 sums all the same.
    ALWAYS = "always"


class EffectOp(Relax.Operation):
    """Base of ops with side effects; see :class:`Op` for the pure ones.

    Class attributes that an op sets:
        attrs: its attributes by name.
        infer: static function from operand infos and attribute values to one info or a list of them. An op whose result
            the types alone determine (``reshape``) leaves it out; its builder then wants ``result_types``.
        check: static function of (operand infos, result infos, attribute values) for what inference does not see. Where it
            knows sizes that the results' types leave open it returns infos that have them.
        same_vdevice: False when operands and results may be on different devices.

    And what it is, which passes ask instead of knowing ops by name:
        may_fail, may_fail_on_integers: whether it is undefined, or an error, for some operands, which a branch may keep away.
        elementwise: whether each element of the result depends on the elements at its place alone, operands broadcast.
        cost: operations and bytes, a :class:`.op_costs.Cost`; one operation per element of the result by default.
        image: how it reads images in another order of dimensions, an :class:`.image_rules.ImageRule`; None when it cannot.
        narrow: whether it computes on floats narrower than f32.
        packed: the operand that is packed as its attribute ``layout`` says; None where it reads none, or makes one.
        grows: the operand that it makes wider element by element, in the kernel that reads the result; None where it does not.
        ties: which of its dimensions run along each other, a function of :mod:`.dim_ties`; None where it works on wholes.

    ``infer`` and ``check`` raise RelaxError with the text of the diagnostic; the op's name is put in front. They compare
    dimensions by :mod:`.size_relations`: what types leave open is then checked at run time.
    """

    # Not annotated: annotations in these classes declare operands, results and regions.
    attrs = cast("Mapping[str, Attr]", {})
    infer = cast(Any, None)
    check = cast(Any, None)
    same_vdevice = True
    elementwise = False
    may_fail = False
    may_fail_on_integers = False
    cost = per_element(1)
    image = cast("ImageRule | None", None)
    narrow = Narrow.NEVER
    packed = cast("str | None", None)
    grows = cast("str | None", None)
    ties = cast("Ties | None", None)

    @classmethod
    def __init_subclass__(cls, *, name: str | None = None, traits: list[type] | None = None, **kwargs: Any):
        required = {key for key, spec in cls.__dict__.get("attrs", {}).items() if spec.default is REQUIRED}
        inherited = {field.name for base in cls.__bases__ for field in getattr(base, "_fields", ())}
        cls.__annotations__ = inspect.get_annotations(cls, eval_str=True) | dict.fromkeys(sorted(required - inherited), Any)
        if name:
            if not _NAME.fullmatch(name):
                raise RelaxError(f"expected an op name of lower-case letters, digits and underscores, got '{name}'")
            cls.verify_invariants = staticmethod(lambda op: _verify(cls, op))
        super().__init_subclass__(name=name, traits=traits, **kwargs)

    @staticmethod
    def _generate_segments(operands_or_results: list[Any]) -> list[int] | None:
        groups = [d for d in operands_or_results if d.variadicity != irdl.Variadicity.single]
        if len(groups) <= 1:
            return None
        return [ext.Operation._variadicity_to_segment(d.variadicity) for d in operands_or_results]

    @classmethod
    def _generate_operand_properties(cls, operands: list[Any]) -> None:
        add_accessors(cls, operands, "operands")

    @classmethod
    def _generate_result_properties(cls, results: list[Any]) -> None:
        add_accessors(cls, results, "results")

    @classmethod
    def _generate_attr_properties(cls, attrs: list[Any]) -> None:
        for key, spec in cls.attrs.items():
            setattr(cls, key, property(lambda self, k=key, s=spec: _read_attr(self.attributes, k, s)))

    @classmethod
    def _generate_init_method(cls, fields: list[Any]) -> None:
        cls.__init__ = lambda self, *args, **kwargs: ir.OpView.__init__(self, cls.create(*args, **kwargs))

    @classmethod
    def create(
        cls,
        *operands: ir.Value | ir.Operation | ir.OpView | None,
        result_types: Sequence[ir.Type] | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
        **attrs: Any,
    ) -> ir.Operation:
        """Builds the op; result types are inferred unless given. Attributes are Python values or MLIR attributes.

        Raises:
            RelaxError: an attribute or operand does not fit, with the text the verifier would give.
        """
        values = [_value(o) for o in operands if o is not None]
        wants, _ = groups_of(cls)
        if not wants.fits(len(values)):
            wanted = ", ".join(wants.names) or "none"
            raise RelaxError(f"'{cls.OPERATION_NAME}' op expected operands {wanted}, got {len(values)}")
        given = _written(cls, {k: v for k, v in attrs.items() if v is not None})
        types = cls._inferred_types(values, given) if result_types is None else list(result_types)
        return ir.Operation.create(
            cls.OPERATION_NAME, results=types, operands=values, attributes=given | _segment_sizes(cls, len(values), len(types)),
            regions=cls._ODS_REGIONS[0], loc=loc, ip=ip,
        )  # fmt: skip

    @classmethod
    def _inferred_types(cls, operands: list[ir.Value], given: Mapping[str, ir.Attribute]) -> list[ir.Type]:
        if cls.infer is None:
            if not groups_of(cls)[1].names:
                return []
            raise RelaxError(f"'{cls.OPERATION_NAME}' expects its result types, they cannot be inferred")
        try:
            infos = [TensorInfo.of(v) for v in operands]
            values = {k: _read_attr(given, k, spec) for k, spec in cls.attrs.items()}
            results = results_of(cls, infos, values)
            if not groups_of(cls)[1].fits(len(results)):
                raise RelaxError(
                    f"expected infos of results {', '.join(groups_of(cls)[1].names) or 'none'}, got {len(results)}"
                )
        except RelaxError as error:
            raise RelaxError(f"'{cls.OPERATION_NAME}' op {error}") from None
        vdevice = next((i.vdevice for i in infos if i.vdevice), None) if cls.same_vdevice else None
        return [with_vdevice(r.type, vdevice) if vdevice else r.type for r in results]


def _segment_sizes(cls: type[EffectOp], operands: int, results: int) -> dict[str, ir.Attribute]:
    """Of an op with several optional groups, which of them are there: the first ones."""
    counts = zip(_SEGMENTS, (cls._ODS_OPERAND_SEGMENTS, cls._ODS_RESULT_SEGMENTS), (operands, results), strict=True)
    return {
        name: ir.DenseI32ArrayAttr.get([int(i < count) for i in range(len(groups))])
        for name, groups, count in counts
        if groups is not None
    }


class Op(EffectOp, traits=[ext.Pure]):
    """Base of pure ops: upstream's CSE, DCE and LICM work on them. Declared as :class:`EffectOp` says."""


class _DefinesSymbols:
    """What upstream is told of ops that may define symbols: nothing shows that other ops need them, so such an op stays."""

    class Effects(ir.MemoryEffectsOpInterface):
        @staticmethod
        def get_effects(op: ir.OpView, effects: Any) -> None:
            symbols = _symbols_of(op.results[0])
            if symbols is not None and symbols not in [s for o in op.operands if (s := _symbols_of(o)) is not None]:
                effects.append(ir.MemoryEffect.Write)

    @staticmethod
    def attach(name: str) -> None:
        _DefinesSymbols.Effects.attach(name)


class DefiningOp(Op, traits=[_DefinesSymbols]):
    """Base of pure ops whose result's type may define symbols; upstream then leaves them where they are, used or not."""


class _ReadsSymbols:
    """What upstream is told of ops that name symbols which no operand brings: they read what others define.

    Such an op then stays in a loop, where the symbol may be defined, and is still merged with equal ones, and goes unused.
    """

    class Effects(ir.MemoryEffectsOpInterface):
        @staticmethod
        def get_effects(op: ir.OpView, effects: Any) -> None:
            brought = {d for o in op.operands for d in _symbols_of(o) or ()}
            if any(isinstance(d, ir.StringAttr) and d not in brought for d in _named(op)):
                effects.append(ir.MemoryEffect.Read)

    @staticmethod
    def attach(name: str) -> None:
        _ReadsSymbols.Effects.attach(name)


class SymbolicOp(Op, traits=[_ReadsSymbols]):
    """Base of pure ops whose result's type, or attributes, may name symbols that no operand's type does."""


def _named(op: ir.OpView) -> Iterator[ir.Attribute]:
    """The dimensions that an op's results and symbolic attributes name."""
    for result in op.results:
        yield from _symbols_of(result) or ()
    for key, spec in type(op).attrs.items() if isinstance(op, EffectOp) else ():
        if spec.symbolic and key in op.attributes:
            yield from ir.ArrayAttr(op.attributes[key])


def _symbols_of(value: ir.Value) -> ir.ArrayAttr | None:
    encoding = value.type.encoding if isinstance(value.type, ir.RankedTensorType) else None
    return ir.ArrayAttr(encoding["sym"]) if isinstance(encoding, ir.DictAttr) and "sym" in encoding else None


def op_class(op: ir.Operation | ir.OpView) -> type[EffectOp] | None:
    """The class of a relax op, None for an op of another dialect."""
    view = op.opview if isinstance(op, ir.Operation) else op
    return type(view) if isinstance(view, EffectOp) else None


def is_elementwise(op: ir.Operation | ir.OpView) -> bool:
    """Whether each element of the result depends on the elements at its place alone, operands broadcast; no barrier."""
    cls = op_class(op)
    return cls is not None and cls.elementwise


def ties_of(op: ir.Operation | ir.OpView) -> list[Tie]:
    """Dimensions of operands and results that run along each other; none of an op that works on whole tensors."""
    view = op.opview if isinstance(op, ir.Operation) else op
    cls = op_class(view)
    if cls is None or len(view.regions):
        return []
    rule = BROADCAST if cls.elementwise else cls.ties
    return [] if rule is None else rule(view)


def grows_from(op: ir.Operation | ir.OpView) -> ir.Value | None:
    """The operand that an op makes wider element by element; None of an op that does not."""
    cls = op_class(op)
    return None if cls is None or cls.grows is None else getattr(op, cls.grows)


def attrs_of(op: ir.Operation | ir.OpView) -> dict[str, Any]:
    """The values of all declared attributes of a relax op, defaults filled in."""
    cls = op_class(op)
    if cls is None:
        raise RelaxError(f"expected a relax op, got '{op.operation.name}'")
    return {key: _read_attr(op.attributes, key, spec) for key, spec in cls.attrs.items()}


@functools.cache
def groups_of(cls: type[EffectOp]) -> tuple[Group, Group]:
    """The operands and the results of a class: every verification asks."""
    operands, _, results, _ = ext.partition_fields(cls._fields)
    return Group.of(operands), Group.of(results)


def _verify(cls: type[EffectOp], op: ir.OpView) -> bool:
    """Runs before IRDL's own checks, so nothing about operands or attributes may be assumed."""
    seen = _VERIFIED.get()
    if seen is None:
        return _is_valid(cls, op)
    key = (cls, *_types(op.operands), None, *_types(op.results), *op.attributes.items())
    if key in seen:
        return True
    valid = _is_valid(cls, op)
    if valid and not _depends_on_module(op):
        seen.add(key)
    return valid


def _types(values: Sequence[ir.Value]) -> list[ir.Type]:
    return [v.type for v in values]


def _depends_on_module(op: ir.OpView) -> bool:
    """Whether verification looks at the module's list of devices."""
    return any(vdevice_of(v) is not None for v in (*op.operands, *op.results))


def _is_valid(cls: type[EffectOp], op: ir.OpView) -> bool:
    try:
        # Parsing verifies too, and its caller need not have entered the context that rules build types in.
        with op.context:
            _check_attributes(cls, op)
            if _well_formed(cls, op):
                _check_types(cls, op)
    except RelaxError as error:
        op.location.emit_error(f"'{cls.OPERATION_NAME}' op {error.args[0]}")
        return False
    return True


def _check_attributes(cls: type[EffectOp], op: ir.OpView) -> None:
    for item in op.attributes:
        key = item if isinstance(item, str) else item.name
        if key in cls.attrs:
            cls.attrs[key].read(key, op.attributes[key])
        elif "." not in key and key not in _SEGMENTS:
            raise RelaxError(f"has no attribute named '{key}'")
    for key, spec in cls.attrs.items():
        if spec.default is REQUIRED and key not in op.attributes:
            raise RelaxError(f"expected attribute '{key}'")


def _well_formed(cls: type[EffectOp], op: ir.OpView) -> bool:
    """Whether operand and result counts are right; if not, IRDL's check says so right after."""
    operands, results = groups_of(cls)
    return operands.fits(len(op.operands)) and results.fits(len(op.results))


def _check_types(cls: type[EffectOp], op: ir.OpView) -> None:
    wanted, made = groups_of(cls)
    operands, results = wanted.infos(op.operands), made.infos(op.results)
    devices = [i.vdevice for i in (*operands, *results) if i is not None and i.vdevice is not None]
    if devices:
        _check_devices(op, devices, cls.same_vdevice)
    attrs = {key: _read_attr(op.attributes, key, spec) for key, spec in cls.attrs.items()}
    if cls.infer is not None and None not in operands:
        _check_results(results_of(cls, operands, attrs), results)
    if cls.check is not None:
        cls.check(operands, results, attrs)
    for info in (*operands, *results):
        if info is not None and not isinstance(info.dtype, ir.IntegerType | ir.FloatType):
            raise RelaxError(f"expected tensors of integers or floats, got tensor<{info}>")


def _check_devices(op: ir.OpView, devices: list[str], same: bool) -> None:
    other = next((d for d in devices if d != devices[0]), None)
    if same and other is not None:
        raise RelaxError(f"expected all tensors on one device, got '{devices[0]}' and '{other}'")
    known = _module_devices(op)
    unknown = next((d for d in devices if known is not None and d not in known), None)
    if unknown is not None:
        raise RelaxError(f"expected a device of {VDEVICES}, got '{unknown}'")


def _module_devices(op: ir.OpView) -> list[str] | None:
    """The devices that the module around an op lists; None when it lists none."""
    parent = op.operation.parent
    while parent is not None and VDEVICES not in parent.attributes:
        parent = parent.operation.parent
    if parent is None:
        return None
    try:
        return [ir.StringAttr(d).value for d in ir.ArrayAttr(parent.attributes[VDEVICES])]
    except ValueError:
        raise RelaxError(f"expected an array of strings for {VDEVICES}, got {parent.attributes[VDEVICES]}") from None


def _check_results(inferred: list[TensorInfo], written: Sequence[TensorInfo | None]) -> None:
    if len(inferred) != len(written):
        raise RelaxError(f"expected {len(inferred)} results, got {len(written)}")
    for want, got in zip(inferred, written, strict=True):
        if got is None or not same_info(want, got):
            raise RelaxError(f"expected result tensor<{want}>, got {'no tensor' if got is None else f'tensor<{got}>'}")


def _read_attr(attributes: Any, key: str, spec: Attr) -> Any:
    if key in attributes:
        return spec.read(key, attributes[key])
    return None if spec.default is REQUIRED else spec.default


def _written(cls: type[EffectOp], attrs: Mapping[str, Any]) -> dict[str, ir.Attribute]:
    for key in attrs:
        if key not in cls.attrs:
            raise RelaxError(f"'{cls.OPERATION_NAME}' op has no attribute named '{key}'")
    for key, spec in cls.attrs.items():
        if spec.default is REQUIRED and key not in attrs:
            raise RelaxError(f"'{cls.OPERATION_NAME}' op expected attribute '{key}'")
    return {key: cls.attrs[key].write(key, value) for key, value in attrs.items()}


def _value(operand: ir.Value | ir.Operation | ir.OpView) -> ir.Value:
    if isinstance(operand, ir.Operation | ir.OpView) and len(operand.results) == 1:
        return operand.results[0]
    if not isinstance(operand, ir.Value):
        raise RelaxError(f"expected a value or an op with one result as operand, got {type(operand).__name__}")
    return operand
