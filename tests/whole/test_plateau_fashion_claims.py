"""The numbers on studies/plateau_fashion in README and docs/where_selection_pays.md follow from its results.

`PYTHONPATH=src:tests python -m whole.test_plateau_fashion_claims` prints the rows of the tables and the sentences.
"""

from functools import cache

import pandas as pd

from fedcohort.results.method_names import name_method
from whole import claims
from whole.claims import ROOT, average, format_interval
from whole.test_plateau_claims import (
    DOCS,
    DOCS_TEXT,
    LOSS_SEEKING,
    NO_RUNS,
    PUBLISHED,
    README_TEXT,
    differences,
    format_difference,
    is_significant,
    list_cells,
    list_significant,
    list_tests,
    mean_over_settings,
)

STUDY = "plateau_fashion"
NOISY_CELLS = ("noise40", "noise70", "dirichlet_noise40")
QUERYING_METHODS = ("flash", "powd")  # which have references of equal bytes


def method_rows() -> list[str]:
    """Return the rows of the table: random's accuracy, and each method's difference in each setting.

    The last column is the mean over the settings.
    """
    runs_by_cell = {cell: claims.read_runs(STUDY, cell) for cell in list_cells(STUDY)}
    accuracies = [f"{average(runs['random'].values()):.1f}" for runs in runs_by_cell.values()]
    rows = [f"| random selection, accuracy | {' | '.join(accuracies)} | {NO_RUNS} |"]
    for method in ("auto", *PUBLISHED, "random_average", "random_robust"):
        columns = [
            format_difference(cell, method, study=STUDY) if method in runs else NO_RUNS
            for cell, runs in runs_by_cell.items()
        ]
        columns.append(NO_RUNS if NO_RUNS in columns else mean_over_settings(method, STUDY))
        rows.append(f"| {name_method(method)} | {' | '.join(columns)} |")
    return rows


@cache
def adjusted_p_at_equal_bytes() -> dict[tuple[str, str], float]:
    """Return p by setting and method at equal bytes, after one Holm correction over both methods in all settings."""
    tests = [(cell, method) for cell in list_cells(STUDY) for method in QUERYING_METHODS]
    ps = claims.adjust_by_holm([claims.t_test_p(differences_at_equal_bytes(*test)) for test in tests])
    return dict(zip(tests, ps, strict=True))


def differences_at_equal_bytes(cell: str, method: str) -> list[float]:
    """Return a method's differences to random selection that sends as many bytes, by seed, in points."""
    return differences(cell, method, f"random_{method}_bytes", STUDY)


def equal_bytes_rows() -> list[str]:
    """Return a row for each method that queries clients: its differences at equal bytes, bold where significant."""
    rows = []
    for method in QUERYING_METHODS:
        columns = []
        for cell in list_cells(STUDY):
            text = format_interval(differences_at_equal_bytes(cell, method))
            is_bold = adjusted_p_at_equal_bytes()[cell, method] < claims.ALPHA
            columns.append(f"**{text}**" if is_bold else text)
        rows.append(f"| {name_method(method)} | {' | '.join(columns)} |")
    return rows


def docs_sentences() -> list[str]:
    """Return the sentences of the docs with computed numbers."""
    gains, losses = list_significant(1, STUDY), list_significant(-1, STUDY)
    best = max(average(differences(cell, m, study=STUDY)) for cell in list_cells(STUDY) for m in PUBLISHED)
    seeking = [(cell, m) for cell, m in losses if m in LOSS_SEEKING and cell in NOISY_CELLS]
    return [
        f"Holm over all {len(list_tests(STUDY))} tests leaves {len(gains)} significant gains and {len(losses)} "
        "significant losses of half a point or more",
        f"{sum(m in PUBLISHED for _, m in gains)} of the gains and {sum(m in PUBLISHED for _, m in losses)} of the "
        "losses are of published selectors",
        f"no published selector is more than {best:.1f} points above random selection",
        f"significantly behind random selection in {len(seeking)} of {3 * len(LOSS_SEEKING)} tests with label noise",
        describe_tuning(),
        describe_longer_training(),
        f"+{average(differences_at_equal_bytes('noise70', 'flash')):.1f} points with 70 % noisy clients, and "
        f"{sum(adjusted_p_at_equal_bytes()[cell, 'flash'] < claims.ALPHA for cell in list_cells(STUDY)) - 1} "
        "significant losses",
    ]


def describe_longer_training() -> str:
    """Return the sentence on the gain of random selection by training until it has sent FLASH's bytes."""
    gains, ratios = [], []
    for cell in list_cells(STUDY):
        gains.append(average(differences(cell, "random_flash_bytes", study=STUDY)))
        spent = claims.read_runs(STUDY, cell, "bytes")
        ratios.append(average(spent["random_flash_bytes"].values()) / average(spent["random"].values()))
    return (
        f"With FLASH's bytes, which are {min(ratios):.1f} to {max(ratios):.1f} times its own, random selection gains "
        f"{min(gains):.1f} to {max(gains):.1f} points"
    )


def describe_tuning() -> str:
    """Return the sentence on the accuracy of random selection with two learning rates."""
    tuning = pd.read_csv(ROOT / "studies" / STUDY / "tuning.csv").query("setting == 'noise70'")
    means = 50 * (tuning["seed_900"] + tuning["seed_901"])
    accuracies: dict[float, float] = dict(zip(tuning["lr"].tolist(), means.tolist(), strict=True))
    best_rate = max(accuracies, key=lambda rate: accuracies[rate])
    return (
        f"its validation accuracy is {accuracies[best_rate]:.0f} % with a learning rate of {best_rate} and "
        f"{accuracies[0.1]:.0f} % with 0.1 (two seeds, 480 rounds)"
    )


def readme_sentences() -> list[str]:
    """Return the sentences of README with computed numbers, without line breaks."""
    gains = list_significant(1, STUDY)
    n_auto = sum(method == "auto" for _, method in gains)
    assert [test for test in gains if test[1] != "auto"] == [("noise70", "flash")]
    gain = format_interval(differences("noise70", "flash", study=STUDY))
    return [
        f"one published selector gains in one setting: FLASH has {gain} points with 70 % noisy clients",
        f"{format_interval(differences_at_equal_bytes('noise70', 'flash'))} at equal bytes",
        f"`selector=auto` gains {mean_over_settings('auto', STUDY)} points on average, significantly in "
        f"{n_auto} of {len(list_cells(STUDY))} settings",
    ]


def test_the_docs_and_the_readme_have_the_results_of_the_study() -> None:
    rows = [*method_rows(), *equal_bytes_rows()]
    assert [row for row in rows if row not in DOCS.splitlines()] == []
    assert [text for text in docs_sentences() if text not in DOCS_TEXT] == []
    assert [text for text in readme_sentences() if text not in README_TEXT] == []


def test_the_expectations_at_equal_bytes_have_the_stated_outcomes() -> None:
    gains = [
        condition
        for condition, p in adjusted_p_at_equal_bytes().items()
        if p < claims.ALPHA and average(differences_at_equal_bytes(*condition)) > 0
    ]
    assert gains == [("noise70", "flash")]


def test_auto_is_significantly_behind_random_selection_in_no_setting() -> None:
    assert not any(is_significant(cell, "auto", -1, STUDY) for cell in list_cells(STUDY))


if __name__ == "__main__":
    print(*method_rows(), *equal_bytes_rows(), *docs_sentences(), *readme_sentences(), sep="\n")
    print(adjusted_p_at_equal_bytes())
