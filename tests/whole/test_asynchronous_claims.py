"""The numbers on asynchronous rounds in docs/asynchronous.md follow from the results of studies/asynchronous_digits.

`PYTHONPATH=src:tests python -m whole.test_asynchronous_claims` prints the rows of the tables and the sentences.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

from fedcohort.results.method_names import name_method
from whole import claims

STUDY = "asynchronous_digits"
DOCS = claims.ROOT / "docs" / "asynchronous.md"
METHODS = ("random", "over_commit", "oort", "pyramidfl", "refl_late", "fedbuff", "fedbuff_oort", "pisces", "fedasync")
WITH_REFL = (*METHODS[:5], "refl", *METHODS[5:])  # ran with device=phones only
ASYNCHRONOUS = ("fedbuff", "fedbuff_oort", "pisces", "fedasync")
WIDE, SKEW = "speeds_wide", "skew_wide"
SETTINGS = ("speeds_equal", WIDE, SKEW, "phones_away")
TIME, SIZE = "virtual_s_to_target", "bytes_to_target"
NEW_SEEDS = (45, 46, 47, 48, 49)  # those of plan.md
# Method, baseline and setting of the statements on the time to the target that plan.md tests on the new seeds
PLANNED = (
    ("fedbuff", "over_commit", WIDE),
    ("fedbuff", "pyramidfl", WIDE),
    ("fedbuff_oort", "fedbuff", WIDE),
    ("fedbuff_oort", "fedbuff", SKEW),
    ("fedbuff", "random", "speeds_equal"),
    *((method, "random", "phones_away") for method in ASYNCHRONOUS),
)
MEGABYTE, GIGA, TERA = 1e6, 1e9, 1e12


def describe_cost(method: str, cell: str, study: str = STUDY) -> str:
    """Return the median minutes and MB to the target accuracy, or how many seeds reach it; a dash for no run.

    In other studies than `STUDY` the client TFLOPs follow: those of the whole run times the share of its rounds.
    """
    if method not in claims.read_runs(study, cell, TIME):
        return "–"
    values = {
        column: np.array(list(claims.read_runs(study, cell, column)[method].values()))
        for column in (TIME, SIZE, "client_flops", "rounds_to_target", "rounds")
    }
    minutes = values[TIME] / 60
    n_reached = int(np.isfinite(minutes).sum())
    if n_reached < len(minutes):
        return f"{n_reached} of {len(minutes)}"
    decimals = int(np.median(minutes) < 10)
    text = f"{np.median(minutes):.{decimals}f} min, {np.median(values[SIZE]) / MEGABYTE:.0f} MB"
    if study == STUDY:
        return text
    flops = values["client_flops"] * values["rounds_to_target"] / values["rounds"]
    return f"{text}, {np.median(flops) / TERA:.2f}"


def read_clock(study: str, cell: str) -> float:
    """Return the virtual seconds at which the runs of a setting end."""
    overrides = claims.read_study(study)["settings"][cell]["overrides"]
    return next(float(override.partition("=")[2]) for override in overrides if override.startswith("until.virtual_s="))


def table_rows() -> list[str]:
    """Return the rows of the table of costs to the target, and of the table of whole runs, a method each."""
    to_target = [
        f"| {name_method(method)} | " + " | ".join(describe_cost(method, cell) for cell in SETTINGS) + " |"
        for method in WITH_REFL
    ]
    means = {
        column: {m: claims.average(by_seed.values()) for m, by_seed in claims.read_runs(STUDY, WIDE, column).items()}
        for column in ("late", "bytes", "client_flops")
    }
    whole_runs = [
        f"| {name_method(method)} | {means['late'][method]:.1f} | {means['bytes'][method] / MEGABYTE:,.0f} "
        f"| {means['client_flops'][method] / GIGA:.1f} |"
        for method in METHODS
    ]
    return [*to_target, *whole_runs]


@cache
def read_end_costs(study: str, cell: str, column: str) -> claims.Runs:
    """Return the cost of each run at its last evaluation within the limit of virtual time, by method and seed.

    The virtual seconds of a run that passes the limit are the limit.
    """
    results = claims.read_results(study).query("cell == @cell")
    clock = float(results["budget"].str.extract(r"virtual_s=([\d.e+]+)", expand=False).iloc[0])
    curves = claims.read_curves(study).query("cell == @cell and virtual_s <= @clock").sort_values("step")
    is_cut = set(results.query("virtual_s > @clock")[["selector", "seed"]].itertuples(index=False, name=None))
    costs: dict[str, dict[int, float]] = {}
    for method, seed, cost in curves[["selector", "seed", column.replace("rounds", "step")]].itertuples(index=False):
        costs.setdefault(method, {})[seed] = clock if column == "virtual_s" and (method, seed) in is_cut else cost
    return costs


def compare_costs(
    method: str, baseline: str, cell: str, column: str, study: str, seeds: Sequence[int] | None = None
) -> np.ndarray:
    """Return the logarithms of the baseline's cost to the target over the method's, one for each of `seeds`.

    A pair in which a run never met the target counts with the smaller cost at the end of its unmet runs.
    None for `seeds` are all of the study.
    """
    costs = claims.read_runs(study, cell, column)
    ends = read_end_costs(study, cell, column.removesuffix("_to_target"))
    logs = []
    for seed in costs[method] if seeds is None else seeds:
        pair = [costs[m][seed] for m in (baseline, method)]
        unmet_ends = [ends[m][seed] for m in (baseline, method) if math.isnan(costs[m][seed])]
        limit = min(unmet_ends, default=math.inf)
        baseline_cost, method_cost = (limit if math.isnan(cost) else min(cost, limit) for cost in pair)
        logs.append(math.log(baseline_cost / method_cost))
    return np.array(logs)


def measure_speed_up(
    method: str, baseline: str, cell: str, column: str, study: str = STUDY, seeds: Sequence[int] | None = None
) -> tuple[float, ...]:
    """Return how many times as much `baseline` costs: lower end of the 95 % interval, geometric mean, upper end."""
    logs = compare_costs(method, baseline, cell, column, study, seeds)
    return tuple(np.exp(np.mean(logs) + claims.half_width(logs) * np.array([-1, 0, 1])).tolist())


def describe_speed_up(method: str, baseline: str, cell: str, column: str, study: str = STUDY) -> str:
    """Return how many times as much `baseline` costs: the geometric mean over seeds with its 95 % interval."""
    low, middle, high = measure_speed_up(method, baseline, cell, column, study)
    return f"{middle:.1f} [{low:.1f}, {high:.1f}]"


def find_significant(
    planned: Sequence[tuple[str, str, str]], study: str, seeds: Sequence[int]
) -> frozenset[tuple[str, str, str]]:
    """Return the comparisons in `planned` that are significantly faster with `seeds`, after Holm over all of them."""
    logs = [compare_costs(*comparison, TIME, study, seeds) for comparison in planned]
    ps = claims.adjust_by_holm([claims.t_test_p(values) for values in logs])
    is_faster = [p < claims.ALPHA and np.mean(values) > 0 for p, values in zip(ps, logs, strict=True)]
    return frozenset(comparison for comparison, faster in zip(planned, is_faster, strict=True) if faster)


def sentences() -> list[str]:
    with_oort = [describe_speed_up("fedbuff_oort", "fedbuff", cell, TIME) for cell in SETTINGS]
    return [
        f"{describe_speed_up('fedbuff', 'over_commit', WIDE, TIME)} times as fast as over-commitment",
        f"{describe_speed_up('over_commit', 'fedbuff', WIDE, SIZE)} times its bytes",
        f"{describe_speed_up('fedbuff', 'pyramidfl', WIDE, TIME)} times as fast as PyramidFL, which",
        f"{with_oort[1]} times as fast as FedBuff alone with wide speeds, and {with_oort[2]} times with Dirichlet 0.1. "
        f"With equal speeds its speed is {with_oort[0]} times that of FedBuff alone, and with phones {with_oort[3]} "
        "times.",
        f"{describe_speed_up('fedbuff', 'random', 'speeds_equal', TIME)} times as fast as random selection",
        f"With phones it is {describe_speed_up('refl', 'refl_late', 'phones_away', TIME)} times as fast as uniform "
        "selection with the same aggregation",
        *describe_phones(),
        *describe_replication(),
    ]


def describe_phones() -> list[str]:
    """Return what the page states of the setting with phones, from the study's tables and results."""
    tables = claims.ROOT / "studies" / STUDY / "tables"
    numbers = pd.read_csv(tables / "numbers.csv").query("cell == 'phones_away' and role != 'baseline'")
    better = set(numbers["selector"][(numbers["holm_p"] < claims.ALPHA) & (numbers["diff"] > 0)])
    label = claims.read_study(STUDY)["settings"]["phones_away"]["label"]
    speed = pd.read_csv(tables / "speed_virtual_s.csv", index_col="method")[label]
    assert better == set(speed.index[speed.str.contains("▲")]) == {*numbers["selector"]} - {"oort", "pyramidfl"}
    accuracies = {m: claims.read_runs(STUDY, "phones_away")[m].values() for m in ("random", "oort", "pyramidfl")}
    worst_of_others = min(claims.average(claims.read_runs(STUDY, "phones_away")[m].values()) for m in better)
    return [
        f"With phones {len(better)} of {len(numbers)} methods end with a significantly better accuracy than random "
        "selection and reach 80 % significantly sooner",
        f"Oort and PyramidFL are the other two: they end at {claims.average(accuracies['oort']):.0f} and "
        f"{claims.average(accuracies['pyramidfl']):.0f} % on average, random selection at "
        f"{claims.average(accuracies['random']):.0f} %, and the {len(better)} methods at {worst_of_others:.0f} % or "
        "more",
    ]


def describe_replication() -> list[str]:
    """Return what the page states of the statements that plan.md tests on the new seeds."""
    significant = find_significant(PLANNED, STUDY, NEW_SEEDS)
    assert (len(significant), len(PLANNED)) == (9, 9), "the page states that all nine are replicated"
    equal = measure_speed_up(*PLANNED[4], TIME, STUDY, NEW_SEEDS)
    return [
        "All nine are replicated (paired t-tests of the logarithms, Holm over the nine)",
        f"FedBuff with equal speeds is not; it is {equal[1]:.1f} [{equal[0]:.1f}, {equal[2]:.1f}] times as fast on the "
        "new seeds",
    ]


def test_the_docs_have_the_costs_and_speed_ups_of_the_study() -> None:
    text = DOCS.read_text()
    for row in table_rows():
        assert row in text
    flat_text = " ".join(text.split())
    for sentence in sentences():
        assert sentence in flat_text
    definition = claims.read_study(STUDY)
    assert {"clients=50", "cohort=10", "client.epochs=2", "rounds=2000"} <= set(definition["common"])
    numbers = pd.read_csv(claims.ROOT / "studies" / STUDY / "tables" / "numbers.csv", index_col=["cell", "selector"])
    ended = numbers["ended_by_rounds"].loc[lambda counts: counts > 0].to_dict()
    assert ended == {(WIDE, "fedasync"): 5, (SKEW, "fedasync"): 8}
    assert "5 of 10 with wide speeds and 8 of 10 with Dirichlet 0.1" in flat_text
    assert (len(definition["seeds"]), definition["target"]) == (10, 0.8)
    hours = [read_clock(STUDY, cell) / 3600 for cell in SETTINGS]
    text = f"after {hours[0]:g} hours of virtual time with equal speeds, {hours[1]:g} hours with wide speeds, and "
    assert f"{text}{60 * hours[3]:g} minutes with phones" in flat_text
    assert hours[1] == hours[2]


if __name__ == "__main__":
    print(*table_rows(), *sentences(), sep="\n")
