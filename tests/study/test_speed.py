"""How soon a target is met, from made-up times; the statistics themselves are tested in `tests/results`."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from fedcohort.results.verdict import TARGET_UNREACHED
from fedcohort.study.definition import Study
from fedcohort.study.results import Results
from fedcohort.study.speed import COST_LABELS, format_cost_ratios, format_speed_up, measure_speed_ups
from study.small_study import make_results, write_study

UNMET = math.nan
SIX = {"seeds": [0, 1, 2, 3, 4, 5], "methods": ["flash", "powd"], "verdict": {"min_seeds": 4}}


def timed(
    study: Study,
    costs: Mapping[str, Mapping[str, Sequence[float]]],
    units: Sequence[str] = tuple(COST_LABELS),
    spent: Mapping[str, float] = MappingProxyType({}),
) -> Results:
    """Return results with these costs to the target by cell, row and seed, in all of `units`; other costs are 1.

    spent: what the rows named had spent by their end, the others 1e9.
    """
    results = make_results(
        study,
        {
            cell: {row: [0.8] * len(values) for row, values in values_by_method.items()}
            for cell, values_by_method in costs.items()
        },
    )
    for (cell, row, seed), facts in results.rows.items():
        for unit in COST_LABELS:
            facts[f"{unit}_to_target"] = costs[cell][row][seed] if unit in units else 1.0
            facts[unit] = facts[f"{unit}_spent"] = spent.get(row, 1e9)
    return results


@pytest.mark.parametrize(
    ("base", "method", "text"),
    [
        ([100, 101, 99, 100, 102, 98], [50, 50, 50, 50, 50, 50], "2.00▲"),
        ([50] * 6, [100, 101, 99, 100, 102, 98], "0.50▼"),
        ([100, 101, 99, 100, 102, 98], [100, 99, 98, 101, 100, 99], "1.00"),
        ([90, 91, 92, 93, 94, UNMET], [50, 51, 52, 53, 54, 55], ">=1.78▲"),
        ([50, 51, 52, 53, 54, UNMET], [90, 91, 92, 93, 94, UNMET], "0.62▼"),
        ([UNMET, 50, 60, 60, 60, 60], [50, UNMET, 60, 61, 60, 60], "1.00 (restricted)"),
        ([UNMET, UNMET, UNMET, UNMET, 60, 60], [UNMET, UNMET, UNMET, UNMET, 50, 50], "not reached"),
    ],
)
def test_speed_ups_are_formatted(tmp_path: Path, base: Sequence[float], method: Sequence[float], text: str) -> None:
    study = write_study(tmp_path, **SIX)
    spent = {"random": 100.0, "flash": 100.0}
    speeds = measure_speed_ups(study, timed(study, {"equal": {"random": base, "flash": method}}, spent=spent))
    speed = speeds["virtual_s"]["equal", "flash"]
    assert format_speed_up(speed) == text
    assert (speed.verdict == TARGET_UNREACHED) == (text == "not reached")


def test_the_cost_of_a_speed_up_is_reported(tmp_path: Path) -> None:
    study = write_study(tmp_path, **SIX)
    costs = {"equal": {"random": [100] * 3, "flash": [50] * 3}}
    results = timed(study, costs, spent={"random": 4e9, "flash": 6e9})
    for (_, row, seed), facts in results.rows.items():
        facts["client_flops"] = (1.0 + seed) * (3.0 if row == "flash" else 2.0)
    speed = measure_speed_ups(study, results)["virtual_s"]["equal", "flash"]
    assert speed.costs == {"client_flops": 1.5, "bytes": 1.5}
    assert format_cost_ratios(speed) == "(1.5, 1.5)"


def test_p_is_corrected_over_the_methods_of_a_setting_for_each_unit(tmp_path: Path) -> None:
    study = write_study(tmp_path, **{**SIX, "oracles": ["oracle_clean"]})
    values_by_method = {"random": [100, 101, 99, 100, 102, 98.0], "flash": [50.0] * 6, "oracle_clean": [50.0] * 6}
    costs = {"equal": {**values_by_method, "powd": [51.0] * 6}, "noisy": {**values_by_method, "bound:clean": [1.0] * 6}}
    speeds = measure_speed_ups(study, timed(study, costs, ["bytes"]))
    assert [unit for unit in COST_LABELS if speeds[unit]["equal", "flash"].speed_up.ratio > 1] == ["bytes"]
    byte_speed = speeds["bytes"]["noisy", "flash"]
    assert byte_speed.p == byte_speed.speed_up.p
    assert speeds["bytes"]["equal", "flash"].p == pytest.approx(2 * byte_speed.p)
    assert speeds["bytes"]["equal", "oracle_clean"].p == byte_speed.p, "an oracle is in no family"
    assert ("noisy", "bound:clean") not in speeds["bytes"]


def test_a_target_that_no_run_met_has_no_speed_ups(tmp_path: Path) -> None:
    study = write_study(tmp_path, **SIX)
    unmet_costs = {"random": [UNMET] * 6, "flash": [UNMET] * 6}
    assert measure_speed_ups(study, timed(study, {"equal": unmet_costs})) == {unit: {} for unit in COST_LABELS}


def test_seeds_are_paired_and_few_seeds_are_not_marked(tmp_path: Path) -> None:
    study = write_study(tmp_path, **SIX)
    costs = {"random": [10.0, 20, 30, 1, 1, 1], "powd": [5.0, 10.1, 15]}
    speed = measure_speed_ups(study, timed(study, {"equal": costs}))["virtual_s"]["equal", "powd"]
    assert (speed.speed_up.n, speed.sign) == (3, 0)
