"""The numbers on studies/noise_fashion in README and docs/where_selection_pays.md follow from its results.

`PYTHONPATH=src:tests python -m whole.test_noise_fashion_claims` prints the rows of the table and the sentences.
"""

import pandas as pd

from whole import claims
from whole.claims import ROOT, average, format_interval
from whole.test_plateau_claims import DOCS, DOCS_TEXT, README_TEXT, differences

STUDY, SETTING = "noise_fashion", "noise70"
# The plan's family of four comparisons: a method, what it is compared with, and the text of its row
COMPARISONS = (
    ("flash", "random", "FLASH against random selection, equal rounds"),
    ("flash", "random_flash_bytes", "FLASH against random selection, equal bytes"),
    ("flash", "random_robust", "FLASH against random selection with the robust loss, equal rounds"),
    ("flash_random_rate", "random", "FLASH with random's learning rate against random selection, equal rounds"),
)


# The family of the plan's second addition. The rate of `random_flash_bytes` is the best one for FLASH's bytes, too.
TUNED_COMPARISONS = (
    ("flash", "random_flash_bytes", "FLASH against random selection"),
    ("flash", "robust_flash_bytes_tuned", "FLASH against random selection with the robust loss"),
)


def compare(method: str, reference: str) -> list[float]:
    """Return the differences of `method` to `reference`, by seed, in points."""
    return differences(SETTING, method, reference, STUDY)


def adjusted_ps(family: tuple[tuple[str, str, str], ...] = COMPARISONS) -> list[float]:
    """Return the p-values of a family of comparisons after Holm."""
    return claims.adjust_by_holm([claims.t_test_p(compare(method, reference)) for method, reference, _ in family])


def comparison_rows(family: tuple[tuple[str, str, str], ...] = COMPARISONS) -> list[str]:
    """Return a row for each comparison: the difference in points with its 95 % interval, and the adjusted p-value."""
    rows = []
    for (method, reference, text), p in zip(family, adjusted_ps(family), strict=True):
        rows.append(f"| {text} | {format_interval(compare(method, reference))} | {format_p(p)} |")
    return rows


def format_p(p: float) -> str:
    """Return a p-value with two significant digits, or "< 0.001"."""
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def accuracy_rows() -> list[str]:
    """Return a row for each method: learning rate, rounds, mean accuracy, and bytes relative to random selection."""
    runs, spent = claims.read_runs(STUDY, SETTING), claims.read_runs(STUDY, SETTING, "bytes")
    rounds = claims.read_runs(STUDY, SETTING, "rounds")
    texts = {
        "random": "random selection | 0.001",
        "random_flash_bytes": "random selection, FLASH's bytes | 0.001",
        "random_robust": f"random selection, robust loss | {tuned_rates()['random_robust']}",
        "robust_flash_bytes": f"random selection, robust loss, FLASH's bytes | {tuned_rates()['random_robust']}",
        "robust_flash_bytes_tuned": f"the same, rate tuned for these bytes | {tuned_rates()['robust_flash_bytes']}",
        "flash_random_rate": "FLASH, random's rate | 0.001",
        "flash": "FLASH | 0.003",
    }
    bytes_of_random = average(spent["random"].values())
    return [
        f"| {text} | {average(rounds[method].values()):.0f} | {average(runs[method].values()):.1f} "
        f"| {average(spent[method].values()) / bytes_of_random:.1f} |"
        for method, text in texts.items()
    ]


def tuned_rates() -> dict[str, float]:
    """Return the learning rate with the best mean validation accuracy on the two tuning seeds, by method."""
    tuning = pd.read_csv(ROOT / "studies" / STUDY / "tuning.csv")
    tuning["mean"] = (tuning["seed_900"] + tuning["seed_901"]) / 2
    best = tuning.loc[tuning.groupby("method")["mean"].idxmax()]
    return dict(zip(best["method"].tolist(), best["lr"].tolist(), strict=True))


def test_each_method_has_the_rate_that_was_best_in_its_tuning() -> None:
    definition = claims.read_study(STUDY)
    rates = {
        "random": find_rate(definition["settings"][SETTING]["overrides"]),
        "flash": find_rate(definition["methods"][0]["flash"]),
        "random_robust": find_rate(definition["references"][0]["random_robust"]),
        "random_flash_bytes": find_rate(definition["settings"][SETTING]["overrides"]),
        "robust_flash_bytes": find_rate(definition["same_cost"]["robust_flash_bytes_tuned"]["overrides"]),
    }
    assert rates == tuned_rates()


def find_rate(overrides: list[str]) -> float:
    """Return the learning rate among Hydra overrides."""
    (rate,) = (override.partition("=")[2] for override in overrides if override.startswith("client.lr="))
    return float(rate)


def docs_sentences() -> list[str]:
    """Return the sentences of the docs with computed numbers."""
    digits_loss = average(differences(SETTING, "flash"))
    means = claims.read_curves(STUDY).query("selector == 'robust_flash_bytes'").groupby("step")["value"].mean()
    ten_means = means.rolling(10).mean()
    return [
        "With FLASH's bytes, random selection with the robust loss falls far behind: FLASH has "
        f"{format_interval(compare('flash', 'robust_flash_bytes'))} points (not corrected)",
        f"The mean of ten evaluations is best at round {ten_means.idxmax()}, with {100 * ten_means.max():.1f} %",
        "Random selection with the robust loss has most of the gain: "
        f"{format_interval(compare('random_robust', 'random'))} points (not corrected)",
        f"FLASH is still ahead, by {format_interval(compare('flash', 'robust_flash_bytes_tuned'))} points",
        f"on digits FLASH loses {-digits_loss:.1f} points in this setting",
    ]


def readme_sentence() -> str:
    """Return the sentence of README with computed numbers."""
    equal_rounds, equal_bytes = (format_interval(compare(*pair[:2])) for pair in COMPARISONS[:2])
    rounds = max(claims.read_runs(STUDY, SETTING, "rounds")["random"].values())
    robust_gain = format_interval(compare("flash", "robust_flash_bytes_tuned"))
    return (
        f"for {rounds:.0f} rounds with a tuned learning rate for each method, confirms this: {equal_rounds}, "
        f"at equal bytes {equal_bytes}. Against random selection with FLASH's robust loss, {robust_gain} remain at "
        "equal bytes"
    )


def test_the_docs_and_the_readme_have_the_results_of_the_study() -> None:
    rows = (*comparison_rows(), *comparison_rows(TUNED_COMPARISONS), *accuracy_rows())
    missing = [row for row in rows if row not in DOCS.splitlines()]
    missing += [text for text in docs_sentences() if text not in DOCS_TEXT]
    assert not missing
    assert readme_sentence() in README_TEXT


def test_the_expectations_of_the_plan_have_the_stated_outcomes() -> None:
    gains = [average(compare(method, reference)) for method, reference, _ in COMPARISONS]
    is_better = [gain > 0 and p < claims.ALPHA for gain, p in zip(gains, adjusted_ps(), strict=True)]
    robust_gain = average(compare("random_robust", "random"))
    assert is_better == [True] * 4
    assert gains[0] >= 2
    assert gains[1] > average(differences(SETTING, "flash", "random_flash_bytes", "plateau_fashion"))
    assert gains[3] < gains[0]
    assert robust_gain > gains[0] / 2
    assert average(compare("flash", "robust_flash_bytes")) > gains[2], "the expectation of the addition is refuted"
    tuned_gains = [average(compare(method, reference)) for method, reference, _ in TUNED_COMPARISONS]
    assert max(adjusted_ps(TUNED_COMPARISONS)) < claims.ALPHA, (
        "the second expectation of the second addition is refuted"
    )
    assert tuned_gains[0] == gains[1], "the tuned rate is the same: the first is refuted in part"
    assert 0 < tuned_gains[1] < gains[2]


if __name__ == "__main__":
    print(*comparison_rows(), *comparison_rows(TUNED_COMPARISONS), *accuracy_rows(), sep="\n")
    print(*docs_sentences(), readme_sentence(), sep="\n")
