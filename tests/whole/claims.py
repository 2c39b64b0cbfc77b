"""The numbers of README's section on client selection, from the Parquet files of the studies, with pandas and scipy.

`PYTHONPATH=src:tests python -m whole.claims` prints the rows of the table and the sentences.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from scipy import stats

ROOT = Path(__file__).resolve().parents[2]
ALPHA, LEAST = 0.05, 0.5  # the level, and the smallest difference that counts, in points
OWN = ("flash_whitened", "flash_progress", "flash_answered", "flash_calibrated", "low_ratio", "neural_bandit", "restless_bandit")
SETTINGS = (  # the table's rows: label, study and cell
    ("identical clients", "regimes_digits", "none"),
    ("40 % of the clients have 90 % wrong labels", "regimes_digits", "bimodal40"),
    ("70 % of the clients have 90 % wrong labels", "regimes_digits", "bimodal70"),
    ("one class per client, cohort of 5", "regimes_digits", "shards1"),
    ("Dirichlet 0.05, cohort of 5", "cohorts_digits", "dirichlet05_cohort5"),
    ("persistent stragglers, 10 virtual hours", "regimes_digits", "speeds"),
    ("measured phones, 5 virtual minutes", "regimes_digits", "phones"),
    ("40 % of the clients have wrong labels, and Dirichlet 0.1", "regimes_digits", "noise_classes"),
    ("one class per client, cohort of 5, Fashion-MNIST", "regimes_fashion", "shards1"),
    ("spurious correlation in 16 of 24 clients, coloured MNIST", "spurious_cmnist", "mostly"),
)


def names_of(rows: Sequence[str | Mapping[str, object]]) -> list[str]:
    return [row if isinstance(row, str) else next(iter(row)) for row in rows]


@cache
def study(name: str) -> Mapping[str, object]:
    found: Mapping[str, object] = yaml.safe_load((ROOT / "studies" / name / "study.yaml").read_text())
    return found


@cache
def runs(name: str) -> pd.DataFrame:
    """Runs that are done; `late` in points."""
    found = pd.read_parquet(ROOT / "studies" / name / "results.parquet")
    found = found[(found["status"] == "done") & found["cell"].isin(list(study(name)["cells"]))]  # type: ignore[call-overload]
    return found.assign(late=100 * found["late"])


@cache
def table(name: str, cell: str, column: str = "late") -> pd.DataFrame:
    """A column of the runs of a cell, seeds down, rows across."""
    found = runs(name)
    return found[found["cell"] == cell].pivot_table(index="seed", columns="selector", values=column)


def gaps(name: str, cell: str, row: str) -> pd.Series:
    found = table(name, cell)
    return (found[row] - found["random"]).dropna()


def methods(name: str) -> list[str]:
    """The methods of a study, those that were tuned among them."""
    tuned = ROOT / "studies" / name / "tuned.yaml"
    more = [f"{row}_tuned" for row in yaml.safe_load(tuned.read_text())] if tuned.exists() else []
    return [*names_of(study(name)["selectors"]), *more]  # type: ignore[arg-type]


def spell(values: "pd.Series[float] | Sequence[float]") -> str:
    """`+4.0 [3.4, 4.6]`: the mean with its 95 % interval."""
    x = np.asarray(values, dtype=float)
    half = stats.t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x))
    return f"{x.mean():+.1f} [{x.mean() - half:.1f}, {x.mean() + half:.1f}]"


def holm(ps: "pd.Series[float]") -> "pd.Series[float]":
    """Return Holm's adjusted p-values of those that are finite."""
    known = ps.dropna().sort_values()
    steps = known.to_numpy() * np.arange(len(known), 0, -1)
    return pd.Series(np.minimum(1, np.maximum.accumulate(steps)), known.index).reindex(ps.index)


@cache
def family() -> pd.DataFrame:
    """All tests of methods in the studies of the leaderboard; a federation that two of them have is the first one's."""
    rows, federations = [], set[tuple[str, str]]()
    for name in study("leaderboard")["of"]:  # type: ignore[attr-defined]
        found = runs(name)
        base = found[found["selector"] == "random"].groupby("cell")[["config_hash", "budget"]].last()
        own = {cell: (str(of["config_hash"]), str(of["budget"])) for cell, of in base.iterrows()}
        for cell in (cell for cell in study(name)["cells"] if own[cell] not in federations):  # type: ignore[attr-defined]
            for row in (row for row in methods(name) if row in table(name, cell)):
                d = gaps(name, cell, row)
                is_same = len(d) < 2 or d.std() <= 1e-6 * table(name, cell)[[row, "random"]].abs().max().max()
                p = math.nan if is_same else float(stats.ttest_1samp(d, 0).pvalue)
                rows.append({"study": name, "cell": cell, "row": row, "d": float(d.mean()), "p": p, "n": len(d)})
        federations |= set(own.values())
    tests = pd.DataFrame(rows).set_index(["study", "cell", "row"])
    return tests.assign(holm=holm(tests["p"]))


def is_sure(name: str, cell: str, row: str) -> bool:
    """Whether a difference is significant after one correction over all tests; of a federation in two studies, in either."""
    found = family()
    return bool((name, cell, row) in found.index and found.loc[(name, cell, row), "holm"] < ALPHA)


def named(name: str, cell: str, row: str) -> str:
    text = f"{row}{' †' if row in OWN else ''} {spell(gaps(name, cell, row))}"
    return f"**{text}**" if is_sure(name, cell, row) else text


def line(label: str, name: str, cell: str) -> str:
    """A row of the table: random, headroom, best method and what it costs, largest loss."""
    means = table(name, cell).mean()
    oracles = [row for row in means.index if row in names_of(study(name)["yardsticks"])]  # type: ignore[arg-type]
    enough = [row for row in oracles if len(gaps(name, cell, row)) >= len(table(name, cell)) / 2]
    plain = [row for row in methods(name) if row in means.index and not row.endswith("_tuned")]
    oracle, best, worst = means[enough].idxmax(), means[plain].idxmax(), means[plain].idxmin()
    cost = [table(name, cell, column).mean() for column in ("client_flops", "bytes")]
    spent = ", ".join(f"{of[best] / of['random']:.1f}" for of in cost)
    shown = (f"{means['random']:.1f}", f"{spell(gaps(name, cell, oracle))}", named(name, cell, best), spent)
    return f"| [{label}](studies/{name}/README.md) | {' | '.join(shown)} | {named(name, cell, worst)} |"


def over_settings(name: str) -> tuple[int, int, int, list[tuple[str, str]]]:
    """Return the numbers of settings, seeds and methods of a study, and the methods that are better over the settings.

    The unit is the seed: its mean over families of the mean over a family's settings; p after Holm over the methods.
    """
    cells: Mapping[str, Mapping[str, str]] = study(name)["cells"]  # type: ignore[assignment]
    of = pd.Series({cell: node.get("family") or cell for cell, node in cells.items()})
    rows = [row for row in methods(name) if all(row in table(name, cell) for cell in cells)]
    means = {}
    for row in rows:
        by_cell = pd.DataFrame({cell: gaps(name, cell, row) for cell in cells})
        means[row] = by_cell.T.groupby(of).mean().mean()
    ps = holm(pd.Series({row: float(stats.ttest_1samp(d, 0).pvalue) for row, d in means.items()}))
    better = [row for row in rows if ps[row] < ALPHA and means[row].mean() >= LEAST]
    better.sort(key=lambda row: -means[row].mean())
    return len(cells), len(means[rows[0]]), len(rows), [(row, spell(means[row])) for row in better]


def counts() -> tuple[int, int, int, int]:
    """Return the numbers of tests and settings, and of settings where a method is significantly better, and worse."""
    found = family()
    sure = found[found["holm"] < ALPHA]
    sizes = [len(of.groupby(level=["study", "cell"])) for of in (sure[sure["d"] >= LEAST], sure[sure["d"] <= -LEAST])]
    return int(found["p"].notna().sum()), len(found.groupby(level=["study", "cell"])), sizes[0], sizes[1]


def main() -> None:
    """Print the numbers."""
    print(counts())  # noqa: T201
    for setting in SETTINGS:
        print(line(*setting))  # noqa: T201
    for name in ("cohorts_digits", "regimes_digits"):
        print(name, over_settings(name))  # noqa: T201


if __name__ == "__main__":
    main()
