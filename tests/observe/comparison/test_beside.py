"""What stands beside the headline: other metrics and costs."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from compare_toy import ACC, run, table
from fedcohort.observe.comparison import beside
from fedcohort.observe.comparison.cells import ONE
from fedcohort.observe.comparison.runs import sort
from fedcohort.observe.comparison.tracked import Run

WORST = "clients/acc_worst5"


def spending(word: str, seed: int, seconds: float, acc: float = 0.5, **other: float) -> Run:
    """A run that took so long, ten times as many bytes down, and as many up."""
    cost = {"time/virtual_s": seconds, "comm/down_bytes": 10 * seconds, "comm/up_bytes": seconds}
    one = run(word, seed, acc)
    return replace(one, metrics={**one.metrics, **cost, **{name.replace("__", "/"): v for name, v in other.items()}})


def test_costs_by_hand() -> None:
    """Random has seeds 0 to 2 and ucb 1 to 3: over 1 and 2 it is (30 + 60) / (20 + 40) = 1.5 times as long."""
    runs = [spending("random", s, 10.0 * 2**s) for s in range(3)] + [spending("ucb", s, 30.0 * s) for s in (1, 2, 3)]
    costs = beside.count_costs(sort(runs, "selector", None, ACC), "random")
    assert list(costs) == ["virtual_s", "bytes"], "nobody counted operations"
    ucb = costs["virtual_s"]["ucb", ONE]
    assert (ucb.value.mean, ucb.times, ucb.n) == (60.0, 1.5, 2)
    assert costs["bytes"]["ucb", ONE].value.mean == 660.0
    assert math.isnan(costs["virtual_s"]["random", ONE].times), "not with itself"
    sheet = beside.sheet_of_costs(table(runs), costs)
    assert sheet.head == ["selector", "virtual time", "bytes down and up"]
    assert sheet.rows == [["random", "23.3 s", "257 B"], ["ucb", "60 s (1.50 ×)", "660 B (1.50 ×)"]]
    lines = list(csv.DictReader(beside.costs_csv(table(runs), costs).splitlines()))
    assert [(line["selector"], line["cost"], line["times"]) for line in lines[:2]] == [
        ("random", "virtual_s", ""),
        ("ucb", "virtual_s", "1.5"),
    ]


def test_a_run_without_a_clock_has_no_time() -> None:
    still = [spending("random", 0, 0.0), spending("ucb", 0, 0.0)]
    assert beside.count_costs(sort(still, "selector", None, ACC), "random") == {}
    bare = replace(run("ucb", 0, 0.5), metrics={ACC: 0.5})
    costs = beside.count_costs(sort([spending("random", 0, 5.0), bare], "selector", None, ACC), "random")
    assert beside.sheet_of_costs(table([spending("random", 0, 5.0), bare]), costs).rows[1] == ["ucb", "–", "–"]


def metrics(values: Mapping[str, Sequence[float]]) -> list[Run]:
    """Runs whose worst clients have a tenth of `values`, in seconds."""
    return [
        spending(w, s, v, v / 100, clients__acc_worst5=v / 1000) for w, of in values.items() for s, v in enumerate(of)
    ]


def test_other_metrics_are_columns_with_interval_and_paired_difference() -> None:
    """1, 2, 3 %: mean 2, s 1, half 4.30265 / sqrt(3) = 2.48; the differences 1, 1, 1.3 have s .173 and half .43."""
    runs = metrics({"random": [10, 20, 30], "ucb": [20, 30, 43]})
    headline, worst = (table(runs, metric=metric) for metric in (ACC, WORST))
    sheet = beside.sheet_of_metrics(headline, [worst])
    assert sheet.title == "Other metrics: mean [95 % interval], and paired difference to random"
    assert sheet.head == ["selector", f"{WORST}, %", "− random"]
    assert sheet.rows == [
        ["random", "2.0 [-0.5, 4.5]", "–"],
        ["ucb", "3.1 [0.2, 6.0]", "+1.10 [+0.67, +1.53]"],
    ]


def test_all_beside_each_other_has_the_best_first() -> None:
    runs = metrics({"random": [10, 20, 30], "ucb": [20, 30, 43], "worse": [5, 6, 7]})
    made = table(runs)
    sheet = beside.sheet_of_all(
        made, [table(runs, metric=WORST)], beside.count_costs(sort(runs, "selector", None, ACC), "random")
    )
    assert sheet.head[:3] == ["selector", "seeds", "test/acc, %"]
    assert [row[0] for row in sheet.rows] == ["ucb", "random", "worse"]
    assert [len(row) for row in sheet.rows] == [len(sheet.head)] * 3 == [8] * 3


def test_a_cell_without_the_other_metric_has_a_dash() -> None:
    runs = [*metrics({"random": [10, 20]}), run("ucb", 0, 0.5), run("ucb", 1, 0.5)]
    sheet = beside.sheet_of_metrics(table(runs), [table(runs, metric=WORST)])
    assert sheet.rows[1] == ["ucb", "–", "–"]


def test_marks_stand_beside_the_name() -> None:
    runs = metrics({"random": [10, 20], "oracle": [20, 30]})
    runs = [replace(r, tags={"yardstick": "noise_rate"}) if r.params["selector"] == "oracle" else r for r in runs]
    assert beside.sheet_of_metrics(table(runs), [table(runs, metric=WORST)]).rows[0][0] == "oracle ‡"


@pytest.mark.parametrize("cols", [None, "agg"])
def test_columns_are_named_where_there_are_some(cols: str | None) -> None:
    runs = [run(word, s, 0.1 * s, agg=agg) for word in ("random", "ucb") for agg in ("a", "b") for s in (1, 2)]
    found = sort(runs if cols else [r for r in runs if r.params["agg"] == "a"], "selector", cols, ACC)
    made = table([r for of in found.cells.values() for r in of.values()], cols)
    sheet = beside.sheet_of_all(made, [], {})
    assert sheet.head[:2] == (["selector", "agg"] if cols else ["selector", "seeds"])
    assert len(sheet.rows) == (4 if cols else 2)
