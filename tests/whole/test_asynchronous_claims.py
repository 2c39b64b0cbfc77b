"""The numbers on asynchronous rounds in docs/asynchronous.md follow from the results of studies/asynchronous_digits.

`PYTHONPATH=src:tests python -m whole.test_asynchronous_claims` prints the rows of the table.
"""

import numpy as np
from scipy import stats

from fedcohort.results.method_names import name_method
from whole import claims

STUDY = "asynchronous_digits"
DOCS = claims.ROOT / "docs" / "asynchronous.md"
METHODS = ("random", "over_commit", "oort", "pyramidfl", "refl_late", "fedbuff", "fedbuff_oort", "pisces", "fedasync")
SETTINGS = ("speeds_equal", "speeds_wide", "skew_wide")
MEGABYTE = 1e6


def describe_cost(method: str, cell: str) -> str:
    """Return the median minutes and MB to the target accuracy, or how many seeds reach it if not all do."""
    minutes = np.array(list(claims.read_runs(STUDY, cell, "virtual_s_to_target")[method].values())) / 60
    megabytes = np.array(list(claims.read_runs(STUDY, cell, "bytes_to_target")[method].values())) / MEGABYTE
    n_reached = int(np.isfinite(minutes).sum())
    if n_reached < len(minutes):
        return f"{n_reached} of {len(minutes)}"
    return f"{np.median(minutes):.0f} min, {np.median(megabytes):.0f} MB"


def table_rows() -> list[str]:
    """Return the rows of the table of costs, a method each."""
    return [
        f"| {name_method(method)} | " + " | ".join(describe_cost(method, cell) for cell in SETTINGS) + " |"
        for method in METHODS
    ]


def describe_speed_up(method: str, baseline: str, cell: str, column: str) -> str:
    """Return how many times as much `baseline` costs: the geometric mean over seeds with its 95 % interval."""
    costs = claims.read_runs(STUDY, cell, column)
    logs = np.log([costs[baseline][seed] / value for seed, value in costs[method].items()])
    half_width = stats.t.ppf(0.975, len(logs) - 1) * stats.sem(logs)
    low, middle, high = np.exp(np.mean(logs) + half_width * np.array([-1, 0, 1]))
    return f"{middle:.1f} [{low:.1f}, {high:.1f}]"


def sentences() -> list[str]:
    time, size = "virtual_s_to_target", "bytes_to_target"
    return [
        f"{describe_speed_up('fedbuff', 'over_commit', 'speeds_wide', time)} times as fast as over-commitment",
        f"{describe_speed_up('over_commit', 'fedbuff', 'speeds_wide', size)} times its bytes",
        f"{describe_speed_up('fedbuff', 'pyramidfl', 'speeds_wide', time)} times as fast as PyramidFL, which",
        f"{describe_speed_up('fedbuff_oort', 'fedbuff', 'speeds_wide', time)} times as fast as FedBuff alone",
        f"{describe_speed_up('fedbuff', 'random', 'speeds_equal', time)} times as fast as random selection",
    ]


def test_the_docs_have_the_costs_and_speed_ups_of_the_study() -> None:
    text = DOCS.read_text()
    for row in table_rows():
        assert row in text
    words = " ".join(text.split())
    for sentence in sentences():
        assert sentence in words
    definition = claims.read_study(STUDY)
    assert {"clients=50", "cohort=10", "client.epochs=2"} <= set(definition["common"])
    assert (len(definition["seeds"]), definition["target"]) == (5, 0.8)


if __name__ == "__main__":
    print(*table_rows(), *sentences(), sep="\n")
