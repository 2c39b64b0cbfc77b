"""The numbers on Fashion-MNIST in docs/asynchronous.md follow from the results of studies/asynchronous_fashion.

`PYTHONPATH=src:tests python -m whole.test_asynchronous_fashion_claims` prints the rows of the tables and the sentences.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

from fedcohort.results.method_names import name_method
from whole import claims
from whole.test_asynchronous_claims import (
    DOCS,
    SIZE,
    SKEW,
    TIME,
    WIDE,
    describe_cost,
    describe_speed_up,
    find_significant,
    measure_speed_up,
    read_clock,
)

FASHION = "asynchronous_fashion"
METHODS = (
    *("random", "random_20", "over_commit", "over_commit_15", "oort", "pyramidfl", "refl_late", "fedbuff"),
    "fedbuff_oort",
)
EQUAL = "speeds_equal"
FIRST_SEEDS, NEW_SEEDS = (7000, 7001, 7002, 7003, 7004), (7005, 7006, 7007, 7008, 7009)  # those of the plan's addition
SETTINGS = (EQUAL, WIDE, SKEW)
# Method, baseline and setting of the comparisons of the time to the target that plan.md of FASHION names
PLANNED = (
    ("fedbuff", "random_20", EQUAL),
    ("fedbuff_oort", "random_20", EQUAL),
    *(
        ("fedbuff", baseline, cell)
        for cell in (WIDE, SKEW)
        for baseline in ("over_commit", "over_commit_15", "pyramidfl")
    ),
    *(("fedbuff_oort", "fedbuff", cell) for cell in (WIDE, SKEW)),
)


@cache
def find_replicated() -> frozenset[tuple[str, str, str]]:
    """Return the comparisons that are significantly faster with the first five seeds and with the five new ones."""
    return find_significant(PLANNED, FASHION, FIRST_SEEDS) & find_significant(PLANNED, FASHION, NEW_SEEDS)


def describe_comparison(method: str, baseline: str, cell: str) -> str:
    """Return the speed-up in a setting of `FASHION`, in bold face if it is planned and replicated."""
    if baseline not in claims.read_runs(FASHION, cell):
        return "–"
    times = claims.read_runs(FASHION, cell, TIME)
    assert np.isfinite(list(times[method].values())).all()
    is_lower_bound = np.isnan(list(times[baseline].values())).any()
    text = "≥ " * bool(is_lower_bound) + describe_speed_up(method, baseline, cell, TIME, FASHION)
    return f"**{text}**" if (method, baseline, cell) in find_replicated() else text


def fashion_rows() -> list[str]:
    """Return the rows of the tables on Fashion-MNIST: costs to the target, comparisons of the time, accuracies."""
    costs = [
        f"| {name_method(m)} | " + " | ".join(describe_cost(m, cell, FASHION) for cell in SETTINGS) + " |"
        for m in METHODS
    ]
    pairs = dict.fromkeys((method, baseline) for method, baseline, _ in PLANNED)
    comparisons = [
        f"| {name_method(method)} over {name_method(baseline)} | "
        + " | ".join(describe_comparison(method, baseline, cell) for cell in SETTINGS)
        + " |"
        for method, baseline in pairs
    ]
    results = [claims.read_runs(FASHION, cell) for cell in SETTINGS]
    accuracies = [
        f"| {name_method(m)} | "
        + " | ".join(f"{claims.average(runs[m].values()):.1f}" if m in runs else "–" for runs in results)
        + " |"
        for m in METHODS
    ]
    return [*costs, *comparisons, *accuracies]


def measure_late_gain(method: str, cell: str) -> float:
    """Return the accuracy in the last sixth of the clock minus that in the sixth before, in points, mean over seeds."""
    clock = read_clock(FASHION, cell)
    curves = claims.read_curves(FASHION)
    curves = curves[(curves["cell"] == cell) & (curves["selector"] == method)]
    curves = curves[curves["virtual_s"] < clock]
    sixth = np.floor(6 * curves["virtual_s"] / clock)
    means = curves["value"].groupby([curves["seed"], sixth]).mean().unstack()
    return float(100 * (means[5] - means[4]).mean())


def find_interpolated_time(method: str, cell: str) -> dict[int, float]:
    """Return the seconds to the target by seed, from curves that are interpolated at each minute; NaN if never.

    The mean accuracy of the last 60 minutes must meet the target, so that the distance of evaluations matters less.
    """
    curves = claims.read_curves(FASHION)
    curves = curves[(curves["cell"] == cell) & (curves["selector"] == method)].sort_values("step")
    minutes = np.arange(read_clock(FASHION, cell) // 60 + 1)
    target = claims.read_study(FASHION)["settings"][cell].get("target", claims.read_study(FASHION)["target"])
    times = {}
    for seed, curve in curves.groupby("seed"):
        values = np.interp(60 * minutes, curve["virtual_s"], curve["value"])
        window_means = np.convolve(values, np.full(60, 1 / 60), "valid")
        met = np.flatnonzero(window_means >= target)
        times[int(str(seed))] = 60.0 * (met[0] + 59) if len(met) else math.nan
    return times


def find_interpolated_ratio(method: str, baseline: str, cell: str) -> float:
    """Return the speed-up with interpolated curves, geometric mean over seeds; an unmet target counts as the clock."""
    times, baseline_times = (find_interpolated_time(name, cell) for name in (method, baseline))
    clock = read_clock(FASHION, cell)
    logs = [np.log(np.fmin(baseline_times[seed], clock) / np.fmin(times[seed], clock)) for seed in times]
    return float(np.exp(np.mean(logs)))


def list_failed_expectations(seeds: Sequence[int]) -> list[int]:
    """Return the numbers of the expectations in plan.md that the results of `seeds` do not confirm."""
    significant = find_significant(PLANNED, FASHION, seeds)
    ratio_of_cohorts = measure_speed_up("random_20", "random", EQUAL, TIME, FASHION, seeds)[1]
    over_commit = [measure_speed_up("fedbuff", "over_commit", cell, TIME, FASHION, seeds) for cell in SETTINGS]
    over_commit_bytes = [measure_speed_up("over_commit", "fedbuff", cell, SIZE, FASHION, seeds) for cell in SETTINGS]
    larger, with_oort = (
        [
            claims.average(difference for seed, difference in differences.items() if seed in seeds)
            for differences in (claims.paired_differences(FASHION, cell, *pair) for cell in (WIDE, SKEW))
        ]
        for pair in (("random_20", "random"), ("fedbuff_oort", "fedbuff"))
    )
    holds = [
        ratio_of_cohorts < 1.1 and PLANNED[0] in significant,
        set(PLANNED[2:8]) <= significant,
        all(high < 3.3 for _, _, high in over_commit),
        set(PLANNED[8:]) <= significant,
        all(difference < 0 for difference in larger),
        all(low > 1 for low, _, _ in over_commit_bytes),
        with_oort[1] < 0,
    ]
    return [number for number, is_confirmed in enumerate(holds, start=1) if not is_confirmed]


def fashion_sentences() -> list[str]:
    """Return the sentences on Fashion-MNIST with computed numbers."""
    over_commitment_bytes = [describe_speed_up("over_commit", "fedbuff", cell, SIZE, FASHION) for cell in SETTINGS]
    steps = describe_speed_up("random", "fedbuff", EQUAL, "rounds_to_target", FASHION)
    over_commitment_time = [describe_speed_up("fedbuff", "over_commit", cell, TIME, FASHION) for cell in SETTINGS]
    larger, fedbuff, with_oort = (
        [claims.format_interval(claims.paired_differences(FASHION, cell, *pair).values()) for cell in SETTINGS]
        for pair in (("random_20", "random"), ("fedbuff", "over_commit"), ("fedbuff_oort", "fedbuff"))
    )
    gains = [measure_late_gain(method, cell) for method in ("fedbuff", "fedbuff_oort") for cell in SETTINGS]
    byte_ratios = []
    for cell in (WIDE, SKEW):
        spent = claims.read_runs(FASHION, cell, "bytes")
        byte_ratios.append(claims.average(spent["fedbuff"].values()) / claims.average(spent["over_commit"].values()))
    interpolated = [
        find_interpolated_ratio(*pair, cell)
        for pair in (("fedbuff", "over_commit"), ("fedbuff_oort", "fedbuff"))
        for cell in (WIDE, SKEW)
    ]
    n_first, n_new = (len(find_significant(PLANNED, FASHION, seeds)) for seeds in (FIRST_SEEDS, NEW_SEEDS))
    failed_first, failed_new = (
        ", ".join(map(str, list_failed_expectations(seeds))) for seeds in (FIRST_SEEDS, NEW_SEEDS)
    )
    return [
        f"between {min(gains):.1f} and {max(gains):.1f} points in the last sixth of the time",
        f"is {describe_speed_up('random_20', 'random', EQUAL, TIME, FASHION)} times as fast as one of 10",
        f"differs from that of 10 by {larger[1]} points with wide speeds, and by {larger[2]} with Dirichlet 0.1",
        f"FedBuff takes {steps} times as many steps of ten updates as random selection takes rounds",
        f"{over_commitment_bytes[0]} times the bytes of over-commitment with equal speeds, {over_commitment_bytes[1]} "
        f"times with wide speeds and {over_commitment_bytes[2]} times with Dirichlet 0.1",
        f"{over_commitment_time[1]} times with wide speeds and {over_commitment_time[2]} times with Dirichlet 0.1",
        f"{fedbuff[1]} points above over-commitment with wide speeds and {fedbuff[2]} with Dirichlet 0.1, at "
        f"{byte_ratios[0]:.1f} and {byte_ratios[1]:.1f} times its bytes",
        f"differs from FedBuff's by {with_oort[1]} points with wide speeds and by {with_oort[2]} with Dirichlet 0.1",
        f"FedBuff is then {interpolated[0]:.1f} and {interpolated[1]:.1f} times as fast as over-commitment with wide "
        f"speeds and with Dirichlet 0.1. FedBuff with Oort is {interpolated[2]:.1f} and {interpolated[3]:.1f} times as "
        "fast as FedBuff",
        f"{n_first} of the {len(PLANNED)} planned comparisons are significant with the first five seeds, and {n_new} "
        f"with the new ones; {len(find_replicated())} are replicated",
        f"Of the plan's seven expectations, {failed_first} failed with the first five seeds, and {failed_new} with the "
        "new ones",
    ]


def test_the_docs_have_the_numbers_on_fashion_mnist() -> None:
    text = DOCS.read_text()
    for row in fashion_rows():
        assert row in text
    flat_text = " ".join(text.split())
    for sentence in fashion_sentences():
        assert sentence in flat_text


def test_the_docs_have_the_clocks_targets_and_learning_rates() -> None:
    text, definition = " ".join(DOCS.read_text().split()), claims.read_study(FASHION)
    equal, wide, skewed = (read_clock(FASHION, cell) / 3600 for cell in SETTINGS)
    assert wide == skewed
    assert f"after {equal:g} hours with equal speeds and {wide:g} hours with wide ones" in text
    targets = [100 * value for value in (definition["target"], definition["settings"][SKEW]["target"])]
    assert f"a test accuracy of {targets[0]:g} %, and of {targets[1]:g} % with Dirichlet 0.1" in text
    tuning = pd.read_csv(claims.ROOT / "studies" / FASHION / "tuning.csv").set_index(["methods", "setting", "lr"])
    assert set(tuning.mean(axis=1).unstack().idxmax(axis=1)) == {0.1}


if __name__ == "__main__":
    print(*fashion_rows(), *fashion_sentences(), sep="\n")
