"""How soon a target is met, by hand, from made-up times."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from fedcohort.study.definition import Study
from fedcohort.study.results import Results
from fedcohort.study.sooner import spell_costs
from fedcohort.study.speed import UNITS, Speed, measure_speeds
from study.tiny import made_up, write

NEVER = math.nan
SIX = {"seeds": [0, 1, 2, 3, 4, 5], "selectors": ["flash", "powd"], "win": {"seeds": 4}}
ALL_ONE_WAY = 2 / 2**6  # of six pairs all of whose signs are alike, and of their mirror image


def timed(
    study: Study,
    took: Mapping[str, Mapping[str, Sequence[float]]],
    units: Sequence[str] = UNITS,
    ends: Mapping[str, float] = MappingProxyType({}),
) -> Results:
    """Results in which each row took so long to the target, by cell, row and seed, in all of `units`; the rest 1.

    ends: what the rows named had spent by their end, the others 1e9.
    """
    found = made_up(study, {cell: {row: [0.8] * len(each) for row, each in of.items()} for cell, of in took.items()})
    for (cell, row, seed), facts in found.rows.items():
        for unit in UNITS:
            facts[f"{unit}_to_target"] = took[cell][row][seed] if unit in units else 1.0
            facts[unit] = ends.get(row, 1e9)
    return found


def speed_of(folder: Path, base: Sequence[float], own: Sequence[float]) -> Speed:
    study = write(folder, **SIX)
    speeds = measure_speeds(study, timed(study, {"equal": {"random": base, "flash": own}}))
    return speeds["virtual_s"]["equal", "flash"]


@pytest.mark.parametrize(
    ("base", "own", "times", "p", "sign"),
    [
        ([100] * 6, [50, 40, 60, 50, 45, 55], 100 / 50, ALL_ONE_WAY, 1),
        ([50, 40, 60, 50, 45, 55], [100] * 6, 50 / 100, ALL_ONE_WAY, -1),
        # of an even number of seeds the middle one that claims the less: 1.25 of 1.25 and 2
        ([100] * 6, [80, 80, 80, 50, 50, 50], 100 / 80, ALL_ONE_WAY, 1),
        ([80, 80, 80, 50, 50, 50], [100] * 6, 80 / 100, ALL_ONE_WAY, -1),
        ([NEVER] * 6, [50] * 6, math.inf, ALL_ONE_WAY, 1),
        ([50] * 6, [NEVER] * 6, 0.0, ALL_ONE_WAY, -1),
        # of a middle pair on both sides of 1 nothing is claimed, be it 10 and 1 / 10, or alone and never
        ([100] * 6, [10, 10, 10, 1000, 1000, 1000], 1, 1, 0),
        ([NEVER, NEVER, NEVER, 50, 50, 50], [50, 50, 50, NEVER, NEVER, NEVER], 1, 1, 0),
        ([100] * 6, [60, 50, 50, NEVER, NEVER, NEVER], 1, 2 * 14 / 64, 0),
        # never against 100 is worse than 100 against 50, and last in rank: 1 + 2 + 3 + 4 + 5 of 21 for it, 6 against.
        # Sums up to 6 have 1, 1, 1, 2, 2, 3, 4 of the 64 signs
        ([100] * 6, [50, 49, 48, 47, 46, NEVER], 100 / 49, 2 * 14 / 64, 0),
        # where both never met it there is nothing to compare, and a difference of nothing to rank
        ([100, 100, 100, 100, 100, NEVER], [50, 40, 60, 55, 45, NEVER], 100 / 50, 2 / 2**5, 0),
        # sure, and too small to count
        ([100] * 6, [99, 98, 97, 96.5, 98.5, 97.5], 100 / 98, ALL_ONE_WAY, 0),
    ],
)
def test_times_p_and_sign(
    tmp_path: Path, base: Sequence[float], own: Sequence[float], times: float, p: float, sign: int
) -> None:
    found = speed_of(tmp_path, base, own)
    assert found.times == pytest.approx(times)
    assert found.p == pytest.approx(p)
    assert found.sign == sign


def test_what_a_speed_up_costs(tmp_path: Path) -> None:
    """A method was 3.6 times as fast, and nothing beside it said that it took 7.6 times the computation."""
    study = write(tmp_path, **SIX)
    found = timed(study, {"equal": {"random": [100] * 3, "flash": [50] * 3}}, ends={"random": 4e9, "flash": 6e9})
    for (_, row, seed), facts in found.rows.items():
        facts["client_flops"] = (1.0 + seed) * (3.0 if row == "flash" else 2.0)
    speed = measure_speeds(study, found)["virtual_s"]["equal", "flash"]
    assert speed.costs == {"client_flops": 1.5, "bytes": 1.5}
    assert spell_costs(speed) == "(1.5, 1.5)"


def test_p_is_corrected_over_a_rows_regimes(tmp_path: Path) -> None:
    study = write(tmp_path, **SIX)
    of = {"random": [100.0] * 6, "flash": [50.0] * 6}
    speeds = measure_speeds(study, timed(study, {"equal": of, "noisy": {**of, "powd": [50.0] * 6}}))["rounds"]
    ps = {("equal", "flash"): 2 * ALL_ONE_WAY, ("noisy", "flash"): 2 * ALL_ONE_WAY, ("noisy", "powd"): ALL_ONE_WAY}
    assert {place: speed.p for place, speed in speeds.items()} == pytest.approx(ps)
    assert [speeds[place].sign for place in ps] == [0, 0, 1]


def test_each_unit_is_judged_by_itself(tmp_path: Path) -> None:
    study = write(tmp_path, **SIX)
    speeds = measure_speeds(study, timed(study, {"equal": {"random": [9.0] * 6, "flash": [3.0] * 6}}, ["bytes"]))
    assert {unit: speeds[unit]["equal", "flash"].times for unit in UNITS} == pytest.approx(
        {"virtual_s": 1, "bytes": 3, "rounds": 1}
    )


def test_seeds_are_paired_and_few_of_them_say_nothing(tmp_path: Path) -> None:
    """`powd` has three of the six seeds: its ratio is of these, and no verdict."""
    study = write(tmp_path, **SIX)
    took = {"random": [10.0, 20, 30, 1, 1, 1], "powd": [5.0, 10, 15], "bound:clean": [1.0] * 6}
    speeds = measure_speeds(study, timed(study, {"equal": took}))["virtual_s"]
    assert list(speeds) == [("equal", "powd")]
    assert (speeds["equal", "powd"].times, speeds["equal", "powd"].sign) == (2, 0)
    enough = write(tmp_path, **{**SIX, "win": {"seeds": 3, "alpha": 0.5}})
    assert measure_speeds(enough, timed(enough, {"equal": took}))["virtual_s"]["equal", "powd"].sign == 1


def test_a_target_that_nobody_met_has_no_speeds(tmp_path: Path) -> None:
    study = write(tmp_path, **SIX)
    never = {"random": [NEVER] * 6, "flash": [NEVER] * 6}
    assert measure_speeds(study, timed(study, {"equal": never})) == {unit: {} for unit in UNITS}


def test_a_run_that_ended_before_the_other_got_there_tells_nothing(tmp_path: Path) -> None:
    """It was never there, and counted as later: with 50 MB a run, beside one that took 90 MB to the target."""
    study = write(tmp_path, **SIX)
    took = {"equal": {"random": [NEVER] * 6, "flash": [90e6] * 6}}
    short, long = (measure_speeds(study, timed(study, took, ends={"random": end})) for end in (50e6, 90e6))
    assert short["bytes"] == {}
    assert long["bytes"]["equal", "flash"].sign == 1
    back = {"equal": {"random": [90e6] * 6, "flash": [NEVER] * 6}}
    assert measure_speeds(study, timed(study, back, ends={"flash": 50e6}))["bytes"] == {}
    some = {"equal": {"random": [40e6, *[NEVER] * 5], "flash": [80e6, *[90e6] * 5]}}
    found = measure_speeds(study, timed(study, some, ends={"random": 50e6}))["bytes"]["equal", "flash"]
    assert (found.times, found.p) == pytest.approx((0.5, 1))


def test_a_mark_is_on_the_side_that_was_shown(tmp_path: Path) -> None:
    """Ten times sooner on 19 of 40 seeds and 6 % later on 21: p is that of sooner, and the median is later."""
    study = write(tmp_path, **{**SIX, "seeds": list(range(40))})
    own = [10 + i / 100 for i in range(19)] + [106 + i / 100 for i in range(21)]
    found = measure_speeds(study, timed(study, {"equal": {"random": [100.0] * 40, "flash": own}}))["rounds"]
    speed = found["equal", "flash"]
    assert speed.p < 0.05
    assert speed.times < 1 / 1.05
    assert speed.sign == 0


def test_too_few_seeds_for_a_mark_are_told(tmp_path: Path) -> None:
    """Three regimes of a row: 3 2 / 2^6 = .09 and 3 2 / 2^7 = .047, so that a mark takes 7 seeds."""
    study = write(tmp_path, **{**SIX, "cells": {name: {"words": []} for name in "abc"}})
    of = {"random": [90.0] * 6, "flash": [30.0] * 6, "powd": [30.0] * 6}
    speeds = measure_speeds(study, timed(study, {"a": of, "b": of, "c": of}))
    assert {(each.n, each.need, each.sign) for found in speeds.values() for each in found.values()} == {(6, 7, 0)}
