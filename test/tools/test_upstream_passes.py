"""The list of MLIR's passes that --list-passes prints, against the bindings that are installed."""

from __future__ import annotations

from relaxir.dialect.passes.registry import upstream_passes
from relaxir.tools.pipelines import is_pass, passes


def test_every_listed_pass_is_registered() -> None:
    names = list(upstream_passes())
    assert len(names) > 300
    assert names == sorted(names)
    assert [name for name in names if not is_pass(name)] == []


def test_an_unknown_name_is_no_pass() -> None:
    assert not is_pass("relax-nope")
    assert not is_pass("canonicalise")


def test_our_passes_come_first_with_a_description() -> None:
    listed = dict(passes())
    ours = [name for name, about in listed.items() if about]
    assert ours == list(listed)[: len(ours)]
    assert "relax-lift-transform-params" in ours
