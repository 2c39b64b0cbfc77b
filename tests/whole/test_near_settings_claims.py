"""The table of near settings of diagnoses, and how well it predicts what selection does in settings that are left out.

`PYTHONPATH=src:tests python -m whole.test_near_settings_claims` writes the table from the measured descriptors in
benchmarks/near_settings.csv and the results of the studies, without training, and the numbers of docs/diagnose.md.
"""

import csv
import io
import re
import textwrap
from collections.abc import Mapping
from functools import cache

import numpy as np
import pandas as pd

from fedcohort import units
from fedcohort.results.headroom import cross_fit_best_method
from fedcohort.results.method_names import PUBLISHED_GROUP, describe_method
from fedcohort.results.near_settings import (
    DESCRIPTOR_NAMES,
    N_NEAREST_SETTINGS,
    SETTINGS_TABLE_FILE,
    find_near_settings,
    load_settings,
    measure_distances,
)
from fedcohort.study import definition_file
from whole import claims

COMMAND = "type PYTHONPATH=src:tests python -m whole.test_near_settings_claims"
DOCS, DOCS_WIDTH = claims.ROOT / "docs" / "diagnose.md", 132
MEASURED = claims.ROOT / "benchmarks" / "near_settings.csv"
ENOUGH = 1.0  # points; random selection is enough if no published selector gains more
MIN_GROUP, MAX_CALIBRATION_ERROR = 5, 0.15  # settings with one probability; error above which it is not printed
EXCLUSIONS = {  # what is left out with a setting, and the columns by which it is found
    "the setting": ["study", "setting"],
    "its study": ["study"],
    "its kinds of heterogeneity": ["kinds"],
}


@cache
def read_measured() -> pd.DataFrame:
    """Return the mean descriptors of each setting over the measured seeds, where all are known, in the file's order."""
    table = pd.read_csv(MEASURED).dropna()
    return table.groupby(["study", "setting", "kinds"], sort=False)[list(DESCRIPTOR_NAMES)].mean().reset_index()


def list_selectors(study: str, cell: str) -> list[str]:
    """Return the published selectors that ran on every seed of a setting."""
    return [row for row in claims.list_published_methods(study, cell) if describe_method(row)[1] == PUBLISHED_GROUP]


def average_gains(study: str, cell: str) -> dict[str, float]:
    """Return the mean difference of each published selector to random selection, in points."""
    return {
        row: claims.average(claims.paired_differences(study, cell, row).values()) for row in list_selectors(study, cell)
    }


def list_facts(study: str, cell: str) -> dict[str, str]:
    """Return the texts of a setting: `fedcohort.results.near_settings.StudySetting` describes them."""
    definition = definition_file.load_study(claims.ROOT / "studies" / study)
    overrides = definition.list_overrides(cell)
    random_rows = claims.read_results(study).query("cell == @cell and selector == 'random'")
    limits = dict(re.findall(r"(rounds|virtual_s)=([\d.e+]+)", random_rows["budget"].iloc[0]))
    horizon = f"{limits['rounds']} rounds"
    if "virtual_s" in limits:
        horizon = f"{units.format_seconds(float(limits['virtual_s']))} of virtual time"
    gains = average_gains(study, cell)
    best, worst = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    points = {
        row: claims.format_interval(claims.paired_differences(study, cell, row).values())
        for row in {best, worst, "auto"} & set(claims.read_runs(study, cell))
    }
    return {
        "study": study,
        "setting": cell,
        "label": definition.settings[cell].label,
        "dataset": next(o.partition("=")[2] for o in overrides if o.startswith("dataset=")),
        "horizon": horizon,
        "seeds": str(len(random_rows)),
        "random": f"{claims.average(random_rows['late']):.1f}",
        "selectors": str(len(gains)),
        "best": best,
        "best_points": points[best],
        "worst": worst,
        "worst_points": points[worst],
        "auto_points": points.get("auto", ""),
    }


def write_table() -> str:
    """Return the text of near_settings.csv."""
    rows = [
        {**list_facts(row["study"], row["setting"]), "kinds": row["kinds"]}
        | {name: f"{row[name]:.4f}" for name in DESCRIPTOR_NAMES}
        for _, row in read_measured().iterrows()
    ]
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def estimate_best_gain(study: str, cell: str) -> float:
    """Return the gain of the best published selector in points, cross-fitted over the seeds if there are five."""
    rows = [list(claims.paired_differences(study, cell, row).values()) for row in list_selectors(study, cell)]
    winner = cross_fit_best_method(np.array(rows))
    return winner.cross_fitted_difference.mean if winner.cross_fitted_difference else max(map(claims.average, rows))


def choose_by_nearest(nearest: pd.DataFrame, gains: Mapping[str, float]) -> float:
    """Return what the best selector of the nearest settings gains in a setting with `gains`; 0 for random selection."""
    near_gains = pd.DataFrame([average_gains(row["study"], row["setting"]) for _, row in nearest.iterrows()]).mean()
    near_gains = near_gains[near_gains.index.isin(gains)]
    return gains[str(near_gains.idxmax())] if near_gains.max() > 0 else 0.0


@cache
def leave_out(exclusion: str) -> pd.DataFrame:
    """Return a row per setting that is predicted from its nearest settings.

    `gain` is that of the best selector of the nearest settings, in points. `enough` says whether random selection was
    enough, and `n_near` in how many of the nearest settings it was. `predicted` is the probability that follows from
    `n_near`, and `constant` the share of all settings that are not left out.
    """
    table = read_measured()
    enough = np.array([estimate_best_gain(row["study"], row["setting"]) <= ENOUGH for _, row in table.iterrows()])
    descriptors = table[list(DESCRIPTOR_NAMES)].to_numpy()
    rows = []
    for position, (_, row) in enumerate(table.iterrows()):
        candidates = np.flatnonzero((table[EXCLUSIONS[exclusion]] != row[EXCLUSIONS[exclusion]]).any(axis=1))
        distances = measure_distances(descriptors[position], descriptors[candidates])
        nearest = candidates[np.argsort(distances, kind="stable")[:N_NEAREST_SETTINGS]]
        gain = choose_by_nearest(table.iloc[nearest], average_gains(row["study"], row["setting"]))
        rows.append((row["study"], gain, enough[nearest].sum(), enough[candidates].mean(), enough[position]))
    checks = pd.DataFrame(rows, columns=["study", "gain", "n_near", "constant", "enough"])
    return checks.assign(predicted=(checks["n_near"] + 1) / (N_NEAREST_SETTINGS + 2))  # Laplace's rule of succession


def measure_brier_score(exclusion: str, column: str) -> float:
    """Return the mean squared error of the probabilities `predicted` or `constant` that random selection is enough."""
    table = leave_out(exclusion)
    return float(((table[column] - table["enough"]) ** 2).mean())


def measure_calibration_error(exclusion: str) -> float:
    """Return the largest difference of predicted and seen shares, over the groups of `MIN_GROUP` or more settings."""
    groups = leave_out(exclusion).groupby("predicted")["enough"].agg(["mean", "size"])
    groups = groups[groups["size"] >= MIN_GROUP]
    return float(np.abs(groups["mean"] - groups.index).max())


def format_check_rows() -> list[str]:
    """Return the rows of both tables in docs/diagnose.md, one for each thing that is left out."""
    gain_rows, probability_rows = [], []
    for exclusion in EXCLUSIONS:
        table = leave_out(exclusion)
        n_gains, n_losses = (table["gain"] > 0).sum(), (table["gain"] < -ENOUGH).sum()
        numbers = f"{table['gain'].mean():+.1f} | {n_gains} of {len(table)} | {n_losses} | {table['gain'].min():+.1f}"
        gain_rows.append(f"| {exclusion} | {numbers} |")
        groups = [table.loc[table["n_near"] == n_near, "enough"] for n_near in range(N_NEAREST_SETTINGS + 1)]
        cells = [f"{group.sum()} of {len(group)}" if len(group) else "–" for group in groups]
        scores = [f"{measure_brier_score(exclusion, column):.2f}" for column in ("predicted", "constant")]
        probability_rows.append(f"| without {exclusion} | {' | '.join([*scores, *cells])} |")
    return [*gain_rows, *probability_rows]


def format_paragraphs() -> list[str]:
    """Return the generated paragraphs of docs/diagnose.md, on one line each."""
    table, checks = read_measured(), leave_out("the setting")
    _, usual_distance = find_near_settings(np.full(len(DESCRIPTOR_NAMES), np.nan), load_settings())
    errors = [measure_calibration_error(exclusion) for exclusion in EXCLUSIONS]
    enough_counts = [
        f"{rows.sum()} of {len(rows)} settings of {study!s}"
        for study, rows in checks.groupby("study")["enough"]
        if study in ("cohorts_digits", "plateau_digits")
    ]
    return [
        f"The settings were measured as the command measures, with one seed: {len(table)} settings of "
        f"{table['study'].nunique()} studies (`benchmarks/near_settings.csv`). Three of four have one of another "
        f"study within {usual_distance:.2f} standard deviations. If none is that near to the measured federation, the "
        "page says so.",
        f"Predicted and observed shares differ by up to {errors[0]:.2f}, {errors[1]:.2f} and {errors[2]:.2f} in groups "
        f"of {MIN_GROUP} settings or more. Random selection was enough in {' and in '.join(enough_counts)}, whose runs "
        "are longer and compare fewer selectors. A diagnosis measures neither.",
    ]


def update_docs(text: str) -> str:
    """Return the text of docs/diagnose.md with the rows and paragraphs that follow from the results."""
    for row in format_check_rows():
        first_cell = re.escape(row.split(" |")[0] + " |")
        text = re.sub(rf"^{first_cell}.*$", row, text, flags=re.MULTILINE)
    for paragraph in format_paragraphs():
        first_words = " ".join(paragraph.split()[:4])
        lines = textwrap.fill(paragraph, DOCS_WIDTH, break_on_hyphens=False) + "\n\n"
        text = re.sub(rf"^{first_words}[\s\S]*?\n\n", lines, text, flags=re.MULTILINE)
    return text


def test_the_packaged_settings_follow_from_the_studies() -> None:
    assert SETTINGS_TABLE_FILE.read_text() == write_table(), COMMAND


def test_the_page_has_the_checks_of_the_nearest_settings() -> None:
    """All rows and paragraphs are in the page as generated, and the reason for printing no probability holds."""
    text = DOCS.read_text()
    assert update_docs(text) == text, COMMAND
    assert all(row in text for row in format_check_rows())
    assert all(paragraph in " ".join(text.split()) for paragraph in format_paragraphs())
    assert all(measure_brier_score(name, "predicted") < measure_brier_score(name, "constant") for name in EXCLUSIONS)
    assert max(measure_calibration_error(exclusion) for exclusion in EXCLUSIONS) > MAX_CALIBRATION_ERROR


def main() -> None:
    """Write the table and the numbers of docs/diagnose.md."""
    SETTINGS_TABLE_FILE.write_text(write_table())
    load_settings.cache_clear()
    DOCS.write_text(update_docs(DOCS.read_text()))


if __name__ == "__main__":
    main()
