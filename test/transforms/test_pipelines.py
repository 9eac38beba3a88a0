"""Textual pipelines: what they mean, and one message per mistake."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.errors import DiagnosticError, RelaxError
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.dialect.passes import registry as pass_registry
from relaxir.dialect.passes.base import Pass
from relaxir.dialect.passes.pass_class import check_class
from relaxir.dialect.passes.pipeline_text import list_text, parse_pipeline
from relaxir.dialect.plugins import PASSES
from relaxir.tools import relax_opt

TEXT = """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.negative"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


@dataclass(frozen=True)
class Spy(Pass):
    """Records what it runs on."""

    name: ClassVar[str] = "test-spy"
    anchor: ClassVar[str] = "any"
    seen: ClassVar[list[tuple[Spy, str]]] = []

    flag: bool = False
    count: int = 7
    scale: float = 1.0
    label: str = ""
    some_names: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        self.seen.append((self, op.name))


@dataclass(frozen=True)
class Refuses(Pass):
    """Refuses everything, after changing it."""

    name: ClassVar[str] = "test-refuses"

    def run(self, op: ir.Operation) -> None:
        function = op.regions[0].blocks[0].operations[0]
        function.attributes["touched"] = ir.UnitAttr.get()
        raise RelaxError("expected something else", function.location)


@dataclass(frozen=True)
class Breaks(Pass):
    """Leaves invalid IR."""

    name: ClassVar[str] = "test-breaks"

    def run(self, op: ir.Operation) -> None:
        op.regions[0].blocks[0].operations[0].attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))


@pytest.fixture(autouse=True)
def _passes(monkeypatch):
    monkeypatch.setattr(pass_registry, "_LOADERS", dict(pass_registry._LOADERS))
    pass_registry._loaded.cache_clear()
    for cls in (Spy, Refuses, Breaks):
        manager.register(cls.name, lambda cls=cls: cls)
    Spy.seen.clear()
    yield
    pass_registry._loaded.cache_clear()


@pytest.fixture
def module():
    return parse_module(TEXT, "model.mlir", new_context())


def build(text: str) -> manager.Pipeline:
    return manager.build(text, new_context())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "builtin.module()",
        "cse",
        " builtin.module( cse , canonicalize ) ",
        "any(cse)",
        "builtin.module(func.func(cse,canonicalize{max-iterations=2 region-simplify=disabled}))",
        "relax-canonicalize,func.func(relax-canonicalize{max-rewrites=100},cse),symbol-dce",
    ],
)
def test_pipelines_run(text, module):
    manager.run(module, text)


def test_python_and_cpp_passes_run_in_order_on_the_ops_they_are_nested_under(module):
    manager.run(module, "test-spy,func.func(cse,test-spy{count=2}),canonicalize,test-spy{count=3}")
    assert [(p.count, name) for p, name in Spy.seen] == [(7, "builtin.module"), (2, "func.func"), (3, "builtin.module")]


def test_nesting_several_levels_deep():
    text = f"module {{ module {{ {TEXT} }} {TEXT} }}"
    module = parse_module(text, "-", new_context())
    manager.run(module, "builtin.module(builtin.module(func.func(test-spy)))")
    assert [name for _, name in Spy.seen] == ["func.func"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", Spy()),
        ("flag", Spy(flag=True)),
        ("flag=true count=-3", Spy(flag=True, count=-3)),
        ("flag=0  scale=2.5e1", Spy(scale=25.0)),
        ("label='a b' some-names=x,@y", Spy(label="a b", some_names=("x", "y"))),
        ("some_names={x,y,z}", Spy(some_names=("x", "y", "z"))),
        ('some-names="x,y" label={a b}', Spy(label="a b", some_names=("x", "y"))),
        ("some-names= label=''", Spy()),
        (r"""some-names={x,"a b",@"c,\22\\ \C3\A9",'{\22'}""", Spy(some_names=("x", "a b", 'c,"\\ é', "{\\22"))),
        (r'label="a\0Ab"', Spy(label="a\nb")),
    ],
)
def test_options(options, expected, module):
    manager.run(module, f"test-spy{{{options}}}")
    assert Spy.seen[0][0] == expected


NAMES = ("a b", "a,b", "a{b", "a}b", "a(b", "a'b", 'a"b', "@ab", "a\\22b", "a\nb=c", "", " ", "é", "*.k_proj.*", "a[0]", "main")


@pytest.mark.parametrize("names", [*[(n,) for n in NAMES], (), NAMES])
def test_names_of_any_characters_are_options(names, module):
    text = f"test-spy{{some-names={list_text(names)}}}"
    assert [e.text for e in parse_pipeline(f"{text},cse")] == [text, "cse"]
    manager.run(module, text)
    assert Spy.seen[0][0] == Spy(some_names=names)


def test_patterns_of_a_mesh_may_have_any_characters():
    _, _, _, shard, _ = parse_pipeline(f"{rx.Mesh(tp=2, keep=('a b', 'c,d')).passes}cse")
    assert shard.options == 'ranks=2 keep={"a b","c,d"}'


def test_plain_names_stay_readable():
    assert list_text(["fc.weight"]) == "fc.weight"
    assert list_text(["a", 'b"']) == r'{a,"b\22"}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope", "expected the name of a pass, got 'nope'"),
        ("relax-canonicalise", "expected the name of a pass, got 'relax-canonicalise', did you mean 'relax-canonicalize'"),
        ("canonicalise", "expected the name of a pass, got 'canonicalise', did you mean 'canonicalize'"),
        ("func.func(nope)", "expected the name of a pass, got 'nope'"),
        ("test-spy{conut=1}", "pass 'test-spy' has no option named 'conut', did you mean 'count'"),
        (
            "relax-inline-private-functions{x=1}",
            "pass 'relax-inline-private-functions' has no option named 'x' (options: none)",
        ),
        ("cse{x=1}", "pass 'cse' has no option named 'x'"),
        ("test-spy{count=many}", "expected an integer for option 'count' of pass 'test-spy', got 'many'"),
        ("test-spy{count}", "expected an integer for option 'count' of pass 'test-spy', got no value"),
        ("test-spy{count=}", "expected an integer for option 'count' of pass 'test-spy', got ''"),
        ("test-spy{scale=x}", "expected a number for option 'scale' of pass 'test-spy', got 'x'"),
        ("test-spy{flag=maybe}", "expected true or false for option 'flag' of pass 'test-spy', got 'maybe'"),
        ("test-spy{flag=}", "expected true or false for option 'flag' of pass 'test-spy', got ''"),
        ("test-spy{label}", "expected a string for option 'label' of pass 'test-spy', got no value"),
        ("test-spy{count=1 count=2}", "expected option 'count' of pass 'test-spy' once, got it again"),
        ("func.func(cse", "expected ')' for the '(' at column 10 of 'func.func(cse'"),
        ("cse)", "expected balanced brackets in a pipeline, got an extra ')' at column 4"),
        ("func.func(cse}", "expected balanced brackets in a pipeline, got an extra '}' at column 14"),
        ("test-spy{label='x}", "expected a closing ' in"),
        (r'test-spy{label="\FF"}', r"expected bytes of UTF-8 in a pipeline, got \FF"),
        ("cse,", "expected the name of a pass, got nothing in 'cse,'"),
        ("cse,,cse", "expected the name of a pass, got nothing in 'cse,,cse'"),
        ("(cse)", "expected the name of a pass, got nothing in '(cse)'"),
        ("test-spy{} cse", "expected ',' after 'test-spy{}', got 'cse'"),
        ("not.an_op(cse)", "expected an op to nest passes under, got 'not.an_op'"),
        ("func.func(relax-realize-vdevice)", "expected pass 'relax-realize-vdevice' directly under builtin.module, got it"),
        ("cse\ud800", "expected a pipeline without surrogates, got 'cse\\ud800'"),
        ("func.func(" * 1000, "expected a pipeline nested at most"),
        ("symbol-dce(cse)", "expected an op to nest passes under, got 'symbol-dce'"),
        (
            "one-shot-bufferize{bufferize-function-boundaries=maybe}",
            "expected a valid pass or pipeline, got 'one-shot-bufferize{",
        ),
    ],
)
def test_mistakes(text, message):
    with pytest.raises(RelaxError) as caught:
        build(text)
    assert message in str(caught.value)


def test_functional_run_leaves_its_input_alone(module):
    before = str(module)
    after = manager.run(module, "relax-canonicalize")
    assert str(module) == before
    assert "relax.negative" not in str(after)


def test_refused_module_is_unchanged_and_the_error_has_its_place(module):
    before = str(module)
    with pytest.raises(DiagnosticError) as caught:
        manager.run(module, "relax-canonicalize,test-refuses")
    assert str(module) == before
    assert caught.value.location == "model.mlir:2:1"
    assert "expected something else" in str(caught.value)
    assert isinstance(caught.value.__cause__, RelaxError)


def test_refusal_inside_of_nested_passes_is_told(module):
    text = f"module {{ module {{ {TEXT} }} }}"
    nested = parse_module(text, "nested.mlir", module.context)
    with pytest.raises(DiagnosticError, match="expected something else") as caught:
        manager.run(nested, "builtin.module(builtin.module(test-refuses))")
    assert (caught.value.location or "").startswith("nested.mlir:2")


def test_invalid_result_is_found_after_the_pass(module):
    with pytest.raises(DiagnosticError, match=r"entry block must have|type of"):
        manager.run(module, "test-breaks,cse")


def test_invalid_result_is_found_at_the_end(module):
    with manager.verifying_at_end(), pytest.raises(DiagnosticError, match=r"entry block must have|type of"):
        manager.run(module, "test-breaks,test-spy")
    assert len(Spy.seen) == 1
    with pytest.raises(DiagnosticError):
        manager.run(module, "test-breaks,test-spy")
    assert len(Spy.seen) == 1


def test_handler_that_takes_the_diagnostics_leaves_the_error_its_text(module):
    module.context.emit_error_diagnostics = True
    handler = module.context.attach_diagnostic_handler(lambda diagnostic: True)
    with pytest.raises(DiagnosticError, match="expected something else"):
        manager.run(module, "test-refuses")
    handler.detach()


def test_pass_on_the_wrong_op(module):
    with pytest.raises(RelaxError, match=r"can't run 'func\.func' pass manager on 'builtin\.module'"), module.context:
        manager.Pipeline("func.func").run(module)


def test_names_are_taken_once():
    with pytest.raises(RelaxError, match="expected a new pass name, got 'relax-canonicalize', which is registered already"):
        manager.register("relax-canonicalize", lambda: Spy)


class NoName(Pass):
    """Has no name."""

    def run(self, op: ir.Operation) -> None: ...


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (4, "expected a class derived from Pass, got 4"),
        (NoName, r"expected a text as 'name' of pass class NoName of module .*test_pipelines, got None"),
    ],
)
def test_what_is_no_pass(found, message):
    with pytest.raises(RelaxError, match=message):
        check_class(found)


def test_registry_knows_every_pass_by_its_own_name():
    passes = manager.registered()
    assert len(passes) > 8
    assert all(cls.name == name and issubclass(cls, Pass) and cls.__doc__ for name, cls in passes.items())
    with pytest.raises(KeyError):
        passes["cse"]


def _plug_in(monkeypatch, value: str, name: str = "test-plugin") -> None:
    entry = EntryPoint(name, value, PASSES)
    monkeypatch.setattr(pass_registry, "plugins", lambda group: [entry] if group == PASSES else [])
    pass_registry._load_plugins.cache_clear()


def test_plugins_come_from_entry_points(monkeypatch, module):
    _plug_in(monkeypatch, "relaxir.dialect.transforms.cleanup.canonicalize:Canonicalize")
    assert "relax.negative" not in str(manager.run(module, "test-plugin"))
    pass_registry._load_plugins.cache_clear()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cse", "expected a new pass name, got 'cse', which is one of MLIR's, of plug-in acme:Acme"),
        ("Acme A!", "expected a pass name of lower-case letters, digits and dashes, got 'Acme A!', of plug-in acme:Acme"),
    ],
)
def test_plugin_of_a_name_that_no_pass_can_have(name, message, monkeypatch):
    entry = EntryPoint(name, "acme:Acme", PASSES)
    monkeypatch.setattr(pass_registry, "plugins", lambda group: [entry] if group == PASSES else [])
    pass_registry._load_plugins.cache_clear()
    for _ in range(2):
        with pytest.raises(RelaxError, match=message):
            build("test-plugin")
    pass_registry._load_plugins.cache_clear()


def test_plugin_that_is_no_pass(monkeypatch, capsys):
    _plug_in(monkeypatch, "relaxir.dialect.errors:RelaxError", "test-no-pass")
    with pytest.raises(RelaxError, match=r"expected a class derived from Pass, got <class '.*\.RelaxError'>"):
        build("test-no-pass")
    for flag in ("--list-passes", "--help"):
        assert relax_opt.run([flag]) == 0
        told = capsys.readouterr().out
        assert "expected a class derived from Pass" in next(line for line in told.splitlines() if "--test-no-pass" in line)
        assert "relax-canonicalize" in told
    pass_registry._load_plugins.cache_clear()
    del pass_registry._LOADERS["test-no-pass"]


def test_plugin_that_does_not_load(monkeypatch):
    _plug_in(monkeypatch, "relaxir.nowhere:Nothing")
    with pytest.raises(RelaxError, match=r"expected plug-in 'test-plugin' of relaxir\.passes at relaxir\.nowhere:Nothing, got"):
        build("test-plugin")
    pass_registry._load_plugins.cache_clear()
