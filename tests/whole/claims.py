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

from fedcohort.results.method_names import name_method
from fedcohort.results.winner import cross_fit

ROOT = Path(__file__).resolve().parents[2]
ALPHA, LEAST = 0.05, 0.5  # the level, and the smallest difference that counts, in points
OWN: tuple[str, ...] = (
    "flash_whitened",
    "flash_progress",
    "flash_answered",
    "flash_calibrated",
    "low_ratio",
)  # of no paper
OWN += ("neural_bandit", "restless_bandit")  # stand-ins for papers' methods
SETTINGS = (  # the table's rows: label, study and cell
    ("identical clients", "regimes_digits", "none"),
    ("label noise of 90 % in 40 % of the clients", "regimes_digits", "bimodal40"),
    ("label noise of 90 % in 70 % of the clients", "regimes_digits", "bimodal70"),
    ("one class per client, cohort of 5", "regimes_digits", "shards1"),
    ("Dirichlet 0.05, cohort of 5", "cohorts_digits", "dirichlet05_cohort5"),
    ("persistent stragglers, 10 virtual hours", "regimes_digits", "speeds"),
    ("measured phones, 5 virtual minutes", "regimes_digits", "phones"),
    ("Dirichlet 0.1, and label noise of 90 % in 40 % of the clients", "regimes_digits", "noise_classes"),
    ("one class per client, cohort of 5, Fashion-MNIST", "regimes_fashion", "shards1"),
    ("spurious correlation in 16 of 24 clients, coloured MNIST", "spurious_cmnist", "mostly"),
)
JUDGED = (  # the rows of the table in docs/where_selection_pays.md
    ("equal clients", "regimes_digits", "none"),
    ("Beta noise 30 %, concentration 2", "regimes_digits", "beta30_wide"),
    ("40 % of the clients, 90 % wrong labels", "regimes_digits", "bimodal40"),
    ("70 % of the clients, 90 % wrong labels", "regimes_digits", "bimodal70"),
    ("the same, other seeds, FLASH's variants only", "flash_repairs", "bimodal70"),
    ("the same, Fashion-MNIST", "regimes_fashion", "bimodal70"),
    ("one class per client, cohort of 10", "cohorts_digits", "shards1_cohort10"),
    ("one class per client, cohort of 5", "cohorts_digits", "shards1_cohort5"),
    ("the same, Fashion-MNIST", "regimes_fashion", "shards1"),
    ("two classes per client, cohort of 5", "cohorts_digits", "shards2_cohort5"),
    ("Dirichlet 0.05, cohort of 5", "cohorts_digits", "dirichlet05_cohort5"),
    ("Dirichlet 0.1, cohort of 10", "cohorts_digits", "dirichlet1_cohort10"),
    ("the same, Fashion-MNIST", "regimes_fashion", "dirichlet"),
    ("persistent stragglers, 10 virtual hours", "regimes_digits", "speeds"),
    ("the same, 60 virtual hours, Fashion-MNIST", "regimes_fashion", "speeds"),
    ("measured phones, 5 virtual minutes", "regimes_digits", "phones"),
    ("Dirichlet 0.1 and persistent stragglers", "regimes_digits", "classes_speeds"),
    ("40 % noisy clients and Dirichlet 0.1", "regimes_digits", "noise_classes"),
    ("the same, other seeds, FLASH's variants only", "flash_repairs", "noise_classes"),
    ("40 % noisy clients and persistent stragglers", "regimes_digits", "noise_speeds"),
    ("all three", "regimes_digits", "noise_classes_speeds"),
    ("FLASH's setting", "regimes_digits", "flash_setting"),
    ("spurious correlation in 8 of 24 clients", "spurious_cmnist", "thirds"),
    ("in 16 of 24 clients", "spurious_cmnist", "mostly"),
    ("in 20 of 24 clients", "spurious_cmnist", "nearly_all"),
)
SHOWN = 4  # methods that a row of that table names
Place = tuple[str, str, str]  # study, cell, row
Runs = Mapping[str, Mapping[int, float]]  # of a cell: by row and seed


@cache
def study(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load((ROOT / "studies" / name / "study.yaml").read_text(), yaml.CSafeLoader)
    return found


@cache
def frame(name: str) -> pd.DataFrame:
    """The runs of a study that are done."""
    found = pd.read_parquet(ROOT / "studies" / name / "results.parquet")
    return found[found["status"] == "done"].assign(late=100 * found["late"])


@cache
def runs(name: str, cell: str, column: str = "late") -> Runs:
    """A column of the runs of a cell, `late` in points."""
    rows: dict[str, dict[int, float]] = {}
    found = frame(name)
    of = found[found["cell"] == cell][["selector", "seed", column]]
    for row, seed, value in of.itertuples(index=False):
        rows.setdefault(str(row), {})[int(str(seed))] = float(str(value))
    return rows


def gaps(name: str, cell: str, row: str) -> dict[int, float]:
    """Differences to random selection, by seed."""
    found = runs(name, cell)
    return {seed: value - found["random"][seed] for seed, value in found[row].items() if seed in found["random"]}


def names_of(rows: Iterable[str | Mapping[str, object]]) -> list[str]:
    return [row if isinstance(row, str) else next(iter(row)) for row in rows]


@cache
def methods(name: str) -> list[str]:
    """The methods of a study, those that were tuned among them."""
    path = ROOT / "studies" / name / "tuned.yaml"
    tuned = yaml.load(path.read_text(), yaml.CSafeLoader) if path.exists() else {}
    return [*names_of(study(name)["selectors"]), *(f"{row}_tuned" for row in tuned)]


def average(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def spell(values: Iterable[float]) -> str:
    """`+4.0 [3.4, 4.6]`: the mean with its 95 % interval."""
    x = np.array(list(values))
    half = float(stats.t.ppf(0.975, len(x) - 1)) * x.std(ddof=1) / math.sqrt(len(x))
    return f"{x.mean():+.1f} [{x.mean() - half:.1f}, {x.mean() + half:.1f}]"


def p_of(values: Iterable[float]) -> float:
    """Return p of the t-test that differences in points have mean 0; NaN where they are equal in single precision."""
    d = np.array(list(values))
    return float(stats.ttest_1samp(d, 0).pvalue) if len(d) > 1 and d.std() > 1e-4 else math.nan


def holm(ps: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values of those that are finite."""
    known = sorted((p, i) for i, p in enumerate(ps) if math.isfinite(p))
    steps = np.maximum.accumulate([min(1.0, (len(known) - place) * p) for place, (p, _) in enumerate(known)])
    adjusted = dict(zip([i for _, i in known], steps.tolist(), strict=True))
    return [adjusted.get(i, math.nan) for i in range(len(ps))]


@cache
def family() -> dict[Place, tuple[float, float]]:
    """Mean difference and p after one Holm, of all methods in all settings of the leaderboard's studies.

    A setting that two studies have, the same federation, is the first one's.
    """
    places: list[Place] = []
    federations = set[tuple[str, str]]()
    for name in study("leaderboard")["of"]:
        found = frame(name)
        base = found[found["selector"] == "random"]
        known = zip(base["cell"], base["config_hash"], base["budget"], strict=True)
        own = {cell: (config, budget) for cell, config, budget in known}
        cells = [cell for cell in study(name)["cells"] if own[cell] not in federations]
        places += [(name, cell, row) for cell in cells for row in methods(name) if row in runs(name, cell)]
        federations |= set(own.values())
    of = [gaps(*place).values() for place in places]
    adjusted = holm([p_of(each) for each in of])
    return {place: (average(each), p) for place, each, p in zip(places, of, adjusted, strict=True)}


def counts(of_papers: bool = False) -> tuple[int, int, int, int]:
    """Return the numbers of tests and settings, and of settings where a method is significantly better, and worse.

    of_papers: only methods of papers with their default options; the correction is the same.
    """
    found = family()
    rows = {place[2] for place in found}
    if of_papers:
        rows = {row for row in rows if row not in OWN and not row.endswith("_tuned")}
    sure = {place: d for place, (d, p) in found.items() if p < ALPHA and place[2] in rows}
    sizes = [len({place[:2] for place, d in sure.items() if side * d >= LEAST}) for side in (1, -1)]
    return sum(math.isfinite(p) for _, p in found.values()), len({place[:2] for place in found}), sizes[0], sizes[1]


def oracle_of(name: str, cell: str) -> tuple[str, str]:
    """Return the best oracle of a setting, and its difference; one with less than half of the seeds is none."""
    found = runs(name, cell)
    known = [row for row in names_of(study(name)["yardsticks"]) if 2 * len(found.get(row, ())) >= len(found["random"])]
    best = max(known, key=lambda row: average(found[row].values()))
    return best, spell(gaps(name, cell, best).values())


def published(name: str, cell: str) -> list[str]:
    """Return the methods of papers, with their default options, that ran on every seed of a setting."""
    found = runs(name, cell)
    known = [row for row in methods(name) if row in found and row not in OWN and not row.endswith("_tuned")]
    return [row for row in known if set(found["random"]) <= set(found[row])]


def line(label: str, name: str, cell: str) -> str:
    """Return a row of README's table: random, headroom, best published method, its cost, FLASH, the largest loss.

    The value of the best method is cross-fitted: each seed in turn is left out, and the method is chosen on the others.
    """
    found = runs(name, cell)
    rows, seeds = published(name, cell), sorted(found["random"])
    winner = cross_fit(np.array([[gaps(name, cell, row)[seed] for seed in seeds] for row in rows]))
    assert winner.left_out is not None, "a setting of README's table has five seeds or more"
    best = rows[winner.index]
    worst = min(rows, key=lambda row: average(found[row].values()))
    costs = [runs(name, cell, column) for column in ("client_flops", "bytes")]
    cost = ", ".join(f"{average(of[best].values()) / average(of['random'].values()):.1f}" for of in costs)
    cells = (
        f"{average(found['random'].values()):.1f}",
        oracle_of(name, cell)[1],
        emphasise(f"{name_method(best)} {spell(winner.left_out.by_seed.values())}", (name, cell, best)),
        cost,
        _gain(name, cell, "flash") if "flash" in found else "not run",
        f"{name_method(worst)} {_gain(name, cell, worst)}",
    )
    return f"| [{label}](studies/{name}/README.md) | {' | '.join(cells)} |"


def _gain(name: str, cell: str, row: str) -> str:
    return emphasise(spell(gaps(name, cell, row).values()), (name, cell, row))


def emphasise(text: str, place: Place) -> str:
    """Return the text in bold where the method differs significantly from random selection."""
    return f"**{text}**" if family()[place][1] < ALPHA else text


def over_settings(name: str) -> tuple[int, int, int, list[tuple[str, str]]]:
    """Return the numbers of settings, seeds and methods of a study, and the methods that are better over the settings.

    The unit is the seed: its mean over families of the mean over a family's settings; p after Holm over the methods.
    """
    cells: dict[str, Any] = study(name)["cells"]
    families: dict[str, list[str]] = {}
    for cell, node in cells.items():
        families.setdefault(node.get("family", cell), []).append(cell)
    rows = [row for row in methods(name) if all(row in runs(name, cell) for cell in cells)]
    seeds = sorted(runs(name, next(iter(cells)))["random"])
    by_seed = {
        row: [average(average(gaps(name, cell, row)[s] for cell in of) for of in families.values()) for s in seeds]
        for row in rows
    }
    ps = holm([p_of(of) for of in by_seed.values()])
    better = [row for row, p in zip(rows, ps, strict=True) if p < ALPHA and average(by_seed[row]) >= LEAST]
    better.sort(key=lambda row: -average(by_seed[row]))
    return len(cells), len(seeds), len(rows), [(row, spell(by_seed[row])) for row in better]


def judged(label: str, name: str, cell: str) -> str:
    """A row of the table in docs/where_selection_pays.md: what a study's page marks in a setting."""
    with (ROOT / "studies" / name / "tables" / "numbers.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["cell"] == cell and row["selector"] in methods(name)]
    rows = [row for row in rows if not row["selector"].endswith("_tuned")]
    better, worse = ([row for row in rows if int(row["sign"]) == side] for side in (1, -1))
    better.sort(key=lambda row: -float(row["diff"]))
    worse.sort(key=lambda row: float(row["diff"]))
    shown = [", ".join(map(_mark, of[:SHOWN])) + _more(of) if of else "–" for of in (better, worse)]
    return f"| [{label}](../studies/{name}/README.md) | {oracle_of(name, cell)[1]} | {' | '.join(shown)} |"


def _mark(row: Mapping[str, str]) -> str:
    low, high = (100 * float(row[f"diff_ci95_{side}"]) for side in ("low", "high"))
    text = f"`{row['selector']}` {100 * float(row['diff']):+.1f} [{low:.1f}, {high:.1f}]"
    return f"**{text}**" if float(row["holm_p_all"]) < ALPHA else text


def _more(rows: Sequence[object]) -> str:
    return f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""


def main() -> None:
    """Print the numbers."""
    print(counts())
    for setting in SETTINGS:
        print(line(*setting))
    for setting in JUDGED:
        print(judged(*setting))
    for name in ("cohorts_digits", "regimes_digits"):
        print(name, over_settings(name))


if __name__ == "__main__":
    main()
