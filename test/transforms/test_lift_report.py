"""The report of what passes decided: as data, as JSON there and back, on modules and executables, one for each thread."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import relaxir
from relaxir.dialect.reports import report
from relaxir.dialect.reports.lifting import KeptWeight, LiftedValue, LiftSection, NotLifted, Reason
from relaxir.dialect.reports.report import OtherSection, Report, Section
from relaxir.tools.cli_info import info_lines

TEXT = """
func.func @main(%x: tensor<2x4xf32> {relax.name = "x"}, %w: tensor<8x4xf32> {relax.name = "w"},
                %b: tensor<8xf32> {relax.name = "b"}) -> tensor<2x8xf32> attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %z = "relax.add"(%y, %b) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  return %z : tensor<2x8xf32>
}
"""
LIFT = "relax-lift-transform-params"
SECTION = {"kind": "lift", "function": "f", "transform": "t"}


@dataclass(frozen=True)
class Number(Section):
    """What a test tells."""

    kind: ClassVar[str] = "test-number"

    about: str
    value: float | None

    @property
    def subject(self) -> str:
        return self.about

    def summary(self) -> list[str]:
        return self.lines()

    def lines(self) -> list[str]:
        return [f"{self.about}: {self.value}"]


def lift_section(module: relaxir.Module) -> LiftSection:
    (section,) = (s for s in module.report.sections if isinstance(s, LiftSection))
    return section


def test_a_fresh_module_has_nothing_to_report():
    module = relaxir.Module.parse(TEXT)
    assert (module.report.sections, str(module.report)) == ([], "nothing to report")
    assert module.run("cse").report.sections == []


def test_lifted_kept_and_not_lifted():
    module = relaxir.Module.parse(TEXT, "model.mlir")
    section = lift_section(module.run(LIFT))
    value = LiftedValue("w.permute_dims", "relax.permute_dims", "model.mlir:4:8", ("w",), ("permute_dims",), 128, 128, 1.0)
    assert section == LiftSection(
        "main", "main_transform_params", (value,), (KeptWeight("b", 32),),
        (
            NotLifted("relax.matmul", "model.mlir:5:8", ("w",), Reason.RUN_TIME_VALUE, "x"),
            NotLifted("relax.add", "model.mlir:6:8", ("b",), Reason.RUN_TIME_VALUE, "relax.matmul"),
        ),
        160, 160,
    )  # fmt: skip
    assert module.report.sections == []


def test_runs_add_up_and_a_second_lifting_tells_about_both():
    once = relaxir.Module.parse(TEXT).run(LIFT)
    assert lift_section(once.run("cse")) == lift_section(once)
    assert lift_section(once.run(LIFT)) == lift_section(once)
    stopped = TEXT.replace("(%x, %t)", "(%x, %e)").replace(
        "  %y = ", '  %e = "relax.exp"(%t) {relax.lift = "never"} : (tensor<4x8xf32>) -> tensor<4x8xf32>\n  %y = '
    )
    first = relaxir.Module.parse(stopped).run(LIFT)
    assert next(n.reason for n in lift_section(first).not_lifted) == Reason.OVERRIDE
    second = relaxir.Module.parse(str(first).replace(' {relax.lift = "never"}', "")).run(LIFT)
    (value,) = lift_section(second).lifted
    assert (value.name, value.sources, value.ops) == ("w.permute_dims.exp", ("w",), ("permute_dims", "exp"))
    assert [k.name for k in lift_section(second).kept] == ["b"]


def test_many_ops_that_read_run_time_values_are_counted():
    adds = "\n".join(
        f'  %a{i + 1} = "relax.add"(%a{i}, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>' for i in range(9)
    )
    text = f"""func.func @main(%a0: tensor<4xf32>, %w: tensor<4xf32> {{relax.name = "w"}}) -> tensor<4xf32>
        attributes {{relax.num_input = 1 : i64}} {{
      {adds}
      return %a9 : tensor<4xf32>
    }}"""
    told = str(relaxir.Module.parse(text).run(LIFT).report).splitlines()
    assert told[-1] == "  not lifted because they read run-time values: relax.add x9"
    assert len(told) == 4


def test_shared_transform_tells_about_each_function():
    text = TEXT + TEXT.replace("@main", "@other")
    sections = relaxir.Module.parse(text).run(f"{LIFT}{{shared=true}}").report.sections
    assert [(s.subject, s.transform) for s in sections if isinstance(s, LiftSection)] == [
        ("main", "transform_params"), ("other", "transform_params")
    ]  # fmt: skip


def test_executables_carry_the_report(tmp_path):
    executable = relaxir.compile(relaxir.Module.parse(TEXT))
    (section,) = (s for s in executable.report.sections if isinstance(s, LiftSection))
    assert [v.ops for v in section.lifted] == [("permute_dims", "pack_weight")]
    executable.save(tmp_path / "m.relax")
    loaded = relaxir.load(tmp_path / "m.relax")
    assert loaded.report.sections == executable.report.sections
    assert str(loaded.report) == str(executable.report)
    assert "entry main(" in str(loaded.report)
    assert "permute_dims, pack_weight of w" in str(loaded.report)
    told = "\n".join(info_lines(loaded.manifest))
    assert "\nlifted from main: 1 value, 1 weight kept as they are, 160 B -> " in told
    assert "\n  ops on weights that stay: run-time-value 2\n" in told


def test_artifacts_from_before_there_were_reports_load(tmp_path):
    executable = relaxir.compile(relaxir.Module.parse(TEXT))
    executable.save(tmp_path / "m.relax")
    path = tmp_path / "m.relax" / "manifest.json"
    data = json.loads(path.read_text())
    del data["report"]
    path.write_text(json.dumps(data))
    loaded = relaxir.load(tmp_path / "m.relax")
    assert loaded.report.sections == []
    weights = {"w": np.ones((8, 4), np.float32), "b": np.zeros(8, np.float32)}
    loaded.bind(loaded.prepare(weights))
    np.testing.assert_array_equal(loaded(np.ones((2, 4), np.float32)), np.full((2, 8), 4, np.float32))


def test_json_there_and_back():
    told = relaxir.Module.parse(TEXT).run(LIFT).report.extended(Report([Number("x", 2), Number("y", None)]))
    again = Report.of_json(json.loads(json.dumps(told.as_json())))
    assert again == told
    data = told.as_json()
    data["sections"][0] |= {"later": 1}
    data["sections"].append({"kind": "of-the-future", "x": [1]})
    newer = Report.of_json(data)
    assert newer.sections[:-1] == told.sections
    assert isinstance(newer.sections[-1], OtherSection)
    assert newer.as_json()["sections"][-1] == {"kind": "of-the-future", "x": [1]}
    assert newer.summary()[-1] == str(newer).splitlines()[-1] == "of-the-future: a section of another version"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "report.sections: expected a list, got None"),
        ({"sections": [{}]}, r"report.sections\[0\].kind: expected a string, got None"),
        ({"sections": [{"kind": "test-number", "value": 1.0}]}, r"report.sections\[0\].about: expected str, got None"),
        ({"sections": [{"kind": "test-number", "about": "x", "value": "y"}]}, r"\[0\].value: expected float or null, got 'y'"),
        ({"sections": [SECTION | {"lifted": 3}]}, r"\[0\].lifted: expected a list, got 3"),
        ({"sections": [SECTION | {"lifted": [3]}]}, r"lifted\[0\]: expected an object, got 3"),
    ],
)  # fmt: skip
def test_wrong_json(data, message):
    with pytest.raises(relaxir.RelaxError, match=message):
        Report.of_json(data)


def test_sections_go_to_the_innermost_collector_of_their_own_thread():
    report.add(Number("nobody", 0))
    assert not report.is_collecting()
    with report.collecting() as outer:
        report.add(Number("a", 1))
        with report.collecting() as inner:
            report.add(Number("b", 2))
            thread = threading.Thread(target=lambda: report.add(Number("c", 3)))
            thread.start()
            thread.join()
        report.add(Number("a", 4))
    assert outer.sections == [Number("a", 4)]
    assert inner.sections == [Number("b", 2)]
    assert not report.is_collecting()


def test_a_failed_run_leaves_the_report_alone():
    module = relaxir.Module.parse(TEXT).run(LIFT)
    before = list(module.report.sections)
    with pytest.raises(relaxir.RelaxError):
        module.run(f"{LIFT}{{functions=nobody}}")
    assert module.report.sections == before
    assert not report.is_collecting()


def test_repr_is_short_and_a_notebook_has_all_to_open():
    found = Report([Number(f"<part {i}>", i) for i in range(1000)])
    assert repr(found).startswith("<Report of 1000 sections; print() shows all>\n  <part 0>: 0\n")
    assert repr(found).endswith("  ... 992 lines more")
    page = found._repr_html_()
    assert page.count("&lt;part 999&gt;: 999") == 2  # of the summary, which this section has whole, and of all
    executable = relaxir.compile(relaxir.Module.parse(TEXT))
    assert repr(executable.report).startswith("<ExecutableReport of ")
    prepared = executable.prepare({"w": np.ones((8, 4), np.float32), "b": np.ones(8, np.float32)})
    assert repr(prepared).startswith("<PreparedWeights: 2 weights, ")
    assert len(repr(prepared)) < 200
