"""The numbers on differentially private reports in docs/where_selection_pays.md follow from studies/private_signals.

`PYTHONPATH=src:tests python -m whole.test_privacy_claims` prints the rows of the table.
"""

import math

from fedcohort.results.method_names import name_method
from whole import claims

STUDY = "private_signals"
DOCS = claims.ROOT / "docs" / "where_selection_pays.md"
SETTINGS = {"noisy": "90 % wrong labels in 70 % of the clients", "skewed": "Dirichlet 0.05, cohort of 5"}
LEVELS = ("exact", "epsilon10", "epsilon1")


def methods(setting: str) -> list[str]:
    names: list[str] = claims.read_study(STUDY)["settings"][f"{setting}_exact"]["methods"]
    return names


def table_rows() -> list[str]:
    """Return a row for each setting and selector: differences to random selection, and the epsilon of a run."""
    lines = []
    for setting, label in SETTINGS.items():
        for method in methods(setting):
            settings = [f"{setting}_{level}" for level in LEVELS]
            differences = [claims.paired_differences(STUDY, cell, method).values() for cell in settings]
            gains = [claims.format_interval(values) for values in differences]
            epsilon = claims.average(claims.read_runs(STUDY, settings[1], "epsilon")[method].values())
            lines.append(f"| {label} | {name_method(method)} | {' | '.join(gains)} | {epsilon:.0f} |")
    return lines


def count_better() -> tuple[int, int, int]:
    """Return the number of tests, and of significantly better methods with exact and with noisy reports (Holm)."""
    tests = [(f"{s}_{level}", method) for s in SETTINGS for level in LEVELS for method in methods(s)]
    differences = [list(claims.paired_differences(STUDY, *test).values()) for test in tests]
    adjusted = claims.adjust_by_holm([claims.t_test_p(values) for values in differences])
    better = [
        cell.endswith("exact")
        for (cell, _), values, p in zip(tests, differences, adjusted, strict=True)
        if p < claims.ALPHA and claims.average(values) > 0
    ]
    return sum(map(math.isfinite, adjusted)), sum(better), len(better) - sum(better)


def test_the_page_has_the_results_of_the_study() -> None:
    page = DOCS.read_text()
    assert [row for row in table_rows() if row not in page] == []
    n_tests, n_exact, n_noisy = count_better()
    spelled = {0: "no selector is", 1: "one selector is", 2: "two selectors are"}
    sentence = (
        f"With exact reports {spelled[n_exact]} significantly better than random selection (paired t-tests, Holm over "
        f"all {n_tests} tests of the study), with noise {spelled[n_noisy]}."
    )
    assert sentence in " ".join(page.split())
    definition = claims.read_study(STUDY)
    assert {"dataset=digits", "model=mlp", "clients=50", "rounds=60"} <= set(definition["common"])
    assert len(definition["seeds"]) == len(claims.read_runs(STUDY, "noisy_exact")["random"]) == 5


if __name__ == "__main__":
    print(*table_rows(), count_better(), sep="\n")
