"""The numbers of README's section on client selection, from the Parquet files of the studies, with pandas and scipy.

`PYTHONPATH=src:tests python -m whole.claims` prints the rows of the table and the counts.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from scipy import stats

from whole.claim_settings import DOCS_ROWS, METHODS_PER_ROW, NOT_PUBLISHED

ROOT = Path(__file__).resolve().parents[2]
ALPHA, MIN_DIFFERENCE = 0.05, 0.5  # significance level; smallest difference that counts, in points
Condition = tuple[str, str, str]  # study, cell, row
Runs = Mapping[str, Mapping[int, float]]  # values of one setting, by method and seed


@cache
def read_study(name: str) -> dict[str, Any]:
    definition: dict[str, Any] = yaml.load((ROOT / "studies" / name / "study.yaml").read_text(), yaml.CSafeLoader)
    return definition


@cache
def read_results(name: str) -> pd.DataFrame:
    """Return the finished runs of a study, with `late` (the mean over the last evaluations) in points."""
    results = pd.read_parquet(ROOT / "studies" / name / "results.parquet")
    return results[results["status"] == "done"].assign(late=100 * results["late"])


@cache
def read_runs(name: str, cell: str, column: str = "late") -> Runs:
    """Return a column of a setting's runs by method and seed; `late` is in points."""
    rows: dict[str, dict[int, float]] = {}
    results = read_results(name)
    cell_rows = results[results["cell"] == cell][["selector", "seed", column]]
    for row, seed, value in cell_rows.itertuples(index=False):
        rows.setdefault(str(row), {})[int(str(seed))] = float(str(value))
    return rows


@cache
def read_curves(name: str) -> pd.DataFrame:
    """Return the evaluations of a study's runs."""
    return pd.read_parquet(ROOT / "studies" / name / "curves.parquet")


@cache
def read_means_in_rounds(name: str, first: int, last: int) -> pd.DataFrame:
    """Return the means over the evaluations in rounds `first` to `last`, in points.

    A row is a setting and a seed, and a column a method.
    """
    curves = read_curves(name)
    rows = curves[curves["step"].between(first, last)]
    return 100 * rows.pivot_table(index=["cell", "seed"], columns="selector", values="value", aggfunc="mean")


def differences_in_rounds(name: str, cell: str, method: str, first: int, last: int) -> list[float]:
    """Return a method's differences to random selection by seed, in points, as means over rounds; [] if it has no run.

    Args:
        name: name of the study.
        cell: name of the setting.
        method: name of the method.
        first: first round of the means.
        last: last round of the means.
    """
    means = read_means_in_rounds(name, first, last).loc[cell]
    return (means[method] - means["random"]).dropna().tolist()


def paired_differences(name: str, cell: str, row: str, reference: str = "random") -> dict[int, float]:
    """Return a method's differences to a reference by seed, in points."""
    runs_by_method = read_runs(name, cell)
    return {
        seed: value - runs_by_method[reference][seed]
        for seed, value in runs_by_method[row].items()
        if seed in runs_by_method[reference]
    }


def list_names(rows: Iterable[str | Mapping[str, object]]) -> list[str]:
    return [row if isinstance(row, str) else next(iter(row)) for row in rows]


@cache
def list_methods(name: str) -> list[str]:
    """Return the methods of a study, including the tuned ones."""
    path = ROOT / "studies" / name / "tuned.yaml"
    tuned = yaml.load(path.read_text(), yaml.CSafeLoader) if path.exists() else {}
    return [*list_names(read_study(name)["methods"]), *(f"{row}_tuned" for row in tuned)]


def average(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def half_width(values: Iterable[float]) -> float:
    """Return half the width of the 95 % t interval of the mean."""
    x = np.array(list(values))
    return float(stats.t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x)))


def format_mean(values: Iterable[float]) -> str:
    """Return the mean with its sign and one decimal, and no -0.0."""
    return f"{round(float(np.mean(list(values))), 1) + 0.0:+.1f}"


def format_interval(values: Iterable[float]) -> str:
    """Return the mean with its 95 % t interval, as in `+4.0 [3.4, 4.6]`."""
    x = np.array(list(values))
    return f"{format_mean(x)} [{x.mean() - half_width(x):.1f}, {x.mean() + half_width(x):.1f}]"


def t_test_p(values: Iterable[float]) -> float:
    """Return p of the t-test that differences in points have mean 0; NaN where they are equal in single precision."""
    d = np.array(list(values))
    return float(stats.ttest_1samp(d, 0).pvalue) if len(d) > 1 and d.std() > 1e-4 else math.nan


def adjust_by_holm(ps: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values of those that are finite."""
    finite = sorted((p, i) for i, p in enumerate(ps) if math.isfinite(p))
    steps = np.maximum.accumulate([min(1.0, (len(finite) - rank) * p) for rank, (p, _) in enumerate(finite)])
    adjusted = dict(zip([i for _, i in finite], steps.tolist(), strict=True))
    return [adjusted.get(i, math.nan) for i in range(len(ps))]


@cache
def adjusted_differences() -> dict[Condition, tuple[float, float]]:
    """Return the mean difference and Holm's adjusted p of every method in every setting of the leaderboard's studies.

    A federation that two studies share counts only for the first of them.
    """
    conditions: list[Condition] = []
    federations = set[tuple[str, str]]()
    for name in read_study("leaderboard")["of"]:
        results = read_results(name)
        base = results[results["selector"] == "random"]
        cells_of_baseline = zip(base["cell"], base["config_hash"], base["budget"], strict=True)
        federation_of_cell = {cell: (config, budget) for cell, config, budget in cells_of_baseline}
        settings = [cell for cell in read_study(name)["settings"] if federation_of_cell[cell] not in federations]
        conditions += [
            (name, cell, row) for cell in settings for row in list_methods(name) if row in read_runs(name, cell)
        ]
        federations |= set(federation_of_cell.values())
    differences = [paired_differences(*condition).values() for condition in conditions]
    adjusted = adjust_by_holm([t_test_p(values) for values in differences])
    return {
        condition: (average(values), p) for condition, values, p in zip(conditions, differences, adjusted, strict=True)
    }


def count_significant(of_papers: bool = False) -> tuple[int, int, int, int]:
    """Return the numbers of tests and settings, and of settings where a method is significantly better, and worse.

    of_papers: count only published methods with their default options; the correction is the same.
    """
    adjusted = adjusted_differences()
    rows = {condition[2] for condition in adjusted}
    if of_papers:
        rows = {row for row in rows if row not in NOT_PUBLISHED and not row.endswith("_tuned")}
    sure = {condition: d for condition, (d, p) in adjusted.items() if p < ALPHA and condition[2] in rows}
    sizes = [len({condition[:2] for condition, d in sure.items() if side * d >= MIN_DIFFERENCE}) for side in (1, -1)]
    return (
        sum(math.isfinite(p) for _, p in adjusted.values()),
        len({condition[:2] for condition in adjusted}),
        sizes[0],
        sizes[1],
    )


def find_best_oracle(name: str, cell: str) -> tuple[str, str]:
    """Return the best oracle of a setting, and its difference; one with less than half of the seeds is none."""
    runs_by_method = read_runs(name, cell)
    complete = [
        row
        for row in list_names(read_study(name)["oracles"])
        if 2 * len(runs_by_method.get(row, ())) >= len(runs_by_method["random"])
    ]
    best = max(complete, key=lambda row: average(runs_by_method[row].values()))
    return best, format_interval(paired_differences(name, cell, best).values())


def list_published_methods(name: str, cell: str) -> list[str]:
    """Return the published methods, with their default options, that ran on every seed of a setting."""
    runs_by_method = read_runs(name, cell)
    candidates = [
        row
        for row in list_methods(name)
        if row in runs_by_method and row not in NOT_PUBLISHED and not row.endswith("_tuned")
    ]
    return [row for row in candidates if set(runs_by_method["random"]) <= set(runs_by_method[row])]


@cache
def compare_over_settings(name: str) -> tuple[int, int, int, list[tuple[str, str]]]:
    """Return the numbers of settings, seeds and methods of a study, and the methods that are better over the settings.

    The unit is the seed: its mean over families of the mean over a family's settings; p after Holm over the methods.
    """
    settings: dict[str, Any] = read_study(name)["settings"]
    families: dict[str, list[str]] = {}
    for cell, node in settings.items():
        families.setdefault(node.get("family", cell), []).append(cell)
    rows = [row for row in list_methods(name) if all(row in read_runs(name, cell) for cell in settings)]
    seeds = sorted(read_runs(name, next(iter(settings)))["random"])
    by_seed = {
        row: [
            average(average(paired_differences(name, cell, row)[s] for cell in values) for values in families.values())
            for s in seeds
        ]
        for row in rows
    }
    ps = adjust_by_holm([t_test_p(values) for values in by_seed.values()])
    better = [row for row, p in zip(rows, ps, strict=True) if p < ALPHA and average(by_seed[row]) >= MIN_DIFFERENCE]
    better.sort(key=lambda row: -average(by_seed[row]))
    return len(settings), len(seeds), len(rows), [(row, format_interval(by_seed[row])) for row in better]


def format_docs_row(label: str, name: str, cell: str) -> str:
    """Return a row of the table in docs/where_selection_pays.md: the significant methods of a setting."""
    with (ROOT / "studies" / name / "tables" / "numbers.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["cell"] == cell and row["selector"] in list_methods(name)]
    rows = [row for row in rows if not row["selector"].endswith("_tuned")]
    better, worse = ([row for row in rows if int(row["sign"]) == side] for side in (1, -1))
    better.sort(key=lambda row: -float(row["diff"]))
    worse.sort(key=lambda row: float(row["diff"]))
    cells = [
        ", ".join(map(_format_method, significant[:METHODS_PER_ROW])) + _count_further(significant)
        if significant
        else "–"
        for significant in (better, worse)
    ]
    return f"| [{label}](../studies/{name}/README.md) | {find_best_oracle(name, cell)[1]} | {' | '.join(cells)} |"


def _format_method(row: Mapping[str, str]) -> str:
    low, high = (100 * float(row[f"diff_ci95_{side}"]) for side in ("low", "high"))
    text = f"`{row['selector']}` {100 * float(row['diff']):+.1f} [{low:.1f}, {high:.1f}]"
    return f"**{text}**" if float(row["holm_p_all"]) < ALPHA else text


def _count_further(rows: Sequence[object]) -> str:
    return f" and {len(rows) - METHODS_PER_ROW} more" if len(rows) > METHODS_PER_ROW else ""


def main() -> None:
    """Print all numbers and rows."""
    print(count_significant())
    for setting in DOCS_ROWS:
        print(format_docs_row(*setting))
    for name in ("cohorts_digits", "regimes_digits"):
        print(name, compare_over_settings(name))


if __name__ == "__main__":
    main()
