"""The numbers on studies/plateau_digits in README and docs/where_selection_pays.md follow from its results.

`PYTHONPATH=src:tests python -m whole.test_plateau_claims` prints the rows of the tables and the sentences.
"""

from functools import cache

import numpy as np

from fedcohort.results.headroom import cross_fit_best_method
from fedcohort.results.method_names import name_method
from whole import claims
from whole.claim_settings import README_SETTINGS
from whole.claims import ROOT, average, format_interval

STUDY = "plateau_digits"
PUBLISHED = ("flash", "ucb_cs", "powd", "oort", "pyramidfl", "fedcbs")
SHORT_HORIZON = 60  # round at which most other studies on digits end
EARLY_METHODS = ("powd", "fedcbs", "flash", "low_ratio", "auto")
LOSS_SEEKING = ("powd", "oort", "pyramidfl")
CHANCE = 15  # accuracy in percent below which a run of ten classes learnt nothing
NO_RUNS = "–"
README_TEXT = " ".join((ROOT / "README.md").read_text().split())
DOCS = (ROOT / "docs" / "where_selection_pays.md").read_text()
DOCS_TEXT = " ".join(DOCS.split())


def list_cells(study: str = STUDY) -> list[str]:
    return list(claims.read_study(study)["settings"])


def has_clock(cell: str) -> bool:
    """Return whether virtual time ends the runs of a setting."""
    return any(
        option.startswith("until.virtual_s") for option in claims.read_study(STUDY)["settings"][cell]["overrides"]
    )


def differences(cell: str, method: str, reference: str = "random", study: str = STUDY) -> list[float]:
    """Return a method's differences to a reference by seed, in points."""
    return list(claims.paired_differences(study, cell, method, reference).values())


def is_noisy(cell: str) -> bool:
    return any("label_noise" in option for option in claims.read_study(STUDY)["settings"][cell]["overrides"])


@cache
def adjusted_p(study: str = STUDY) -> dict[tuple[str, str], float]:
    """Return p by setting and method after one Holm correction over all methods and settings of a study."""
    tests = [(cell, method) for cell in list_cells(study) for method in claims.list_methods(study)]
    ps = claims.adjust_by_holm([claims.t_test_p(differences(*test, study=study)) for test in tests])
    return dict(zip(tests, ps, strict=True))


def list_tests(study: str = STUDY) -> list[tuple[str, str]]:
    """Return setting and method of each test of the correction over all methods and settings."""
    return [condition for condition, p in adjusted_p(study).items() if np.isfinite(p)]


def is_significant(cell: str, method: str, side: int, study: str = STUDY) -> bool:
    """Return whether a method is better (`side` 1) or worse (-1) than random selection by half a point or more."""
    difference = side * average(differences(cell, method, study=study))
    return adjusted_p(study)[cell, method] < claims.ALPHA and difference >= claims.MIN_DIFFERENCE


def list_significant(side: int, study: str = STUDY) -> list[tuple[str, str]]:
    """Return setting and method of each significant gain (`side` 1) or loss (-1) of half a point or more."""
    return [test for test in list_tests(study) if is_significant(*test, side, study)]


def format_difference(cell: str, method: str, value: str | None = None, study: str = STUDY) -> str:
    """Return a method's difference to random selection, or `value` in its place, in bold where it is significant.

    It is 0 where the method is random selection in all runs.
    """
    by_seed = differences(cell, method, study=study)
    text = value or (format_interval(by_seed) if any(by_seed) else "0")
    return f"**{text}**" if adjusted_p(study).get((cell, method), 1) < claims.ALPHA else text


def setting_row(cell: str) -> str:
    """Return the row of a setting in the table of the docs.

    Columns: random's accuracy, the best published method, its client FLOPs and bytes as multiples of random's, FLASH,
    auto, and the published method with the largest loss. The difference of the best method is cross-fitted: each seed
    in turn is left out, and the method is chosen on the others.
    """
    winner = cross_fit_best_method(np.array([differences(cell, method) for method in PUBLISHED]))
    assert winner.cross_fitted_difference is not None, "the table needs five seeds"
    best = PUBLISHED[winner.best_row]
    worst = min(PUBLISHED, key=lambda method: average(differences(cell, method)))
    ratios = [cost_ratio(cell, best, column) for column in ("client_flops", "bytes")]
    best_text = f"{name_method(best)} {format_interval(winner.cross_fitted_difference.by_seed.values())}"
    columns = [
        f"{average(claims.read_runs(STUDY, cell)['random'].values()):.1f}",
        format_difference(cell, best, best_text),
        ", ".join(f"{ratio:.1f}" for ratio in ratios),
        format_difference(cell, "flash"),
        format_difference(cell, "auto"),
        f"{name_method(worst)} {format_difference(cell, worst)}",
    ]
    return f"| {claims.read_study(STUDY)['settings'][cell]['label']} | {' | '.join(columns)} |"


def readme_rows() -> list[str]:
    """Return the rows of README's table: random's accuracy, and the difference of each published method and of auto.

    The last two rows have the mean cost over these settings, as multiples of random's.
    """
    methods = (*PUBLISHED, "auto")
    rows = []
    for cell, label in README_SETTINGS.items():
        accuracy = average(claims.read_runs(STUDY, cell)["random"].values())
        columns = [f"{accuracy:.1f}", *(format_half_width(cell, method) for method in methods)]
        rows.append(f"| {label} | {' | '.join(columns)} |")
    for name, column in (("bytes", "bytes"), ("client FLOPs", "client_flops")):
        ratios = [f"{average(cost_ratio(cell, method, column) for cell in README_SETTINGS):.1f}" for method in methods]
        rows.append(f"| *{name}, relative to random* | 1.0 | {' | '.join(ratios)} |")
    return rows


def format_half_width(cell: str, method: str) -> str:
    """Return a method's difference to random selection with half the width of its interval, bold if significant."""
    by_seed = differences(cell, method)
    if not any(by_seed):
        return "same"
    return format_difference(cell, method, f"{claims.format_mean(by_seed)} ± {claims.half_width(by_seed):.1f}")


def cost_ratio(cell: str, method: str, column: str) -> float:
    """Return a method's mean cost in a setting as a multiple of random's."""
    runs = claims.read_runs(STUDY, cell, column)
    return average(runs[method].values()) / average(runs["random"].values())


def stable_rows() -> list[str]:
    """Return the rows of the docs' table: all stable settings, and the averaged model in a last column."""
    return [
        f"{setting_row(cell)} {format_interval(differences(cell, 'random_average'))} |" for cell in list_stable_cells()
    ]


def early_difference(cell: str, method: str) -> float:
    """Return a method's mean difference to random selection over rounds 51 to 60, in points."""
    return average(claims.differences_in_rounds(STUDY, cell, method, SHORT_HORIZON - 9, SHORT_HORIZON))


def horizon_rows() -> list[str]:
    """Return a row for each setting without a clock: differences of methods at round 60, and at the end."""
    rows = []
    for cell, setting in claims.read_study(STUDY)["settings"].items():
        if not has_clock(cell):
            pairs = [
                f"{early_difference(cell, method):+.1f}, {average(differences(cell, method)):+.1f}"
                for method in EARLY_METHODS
            ]
            rows.append(f"| {setting['label']} | {' | '.join(pairs)} |")
    return rows


def equal_bytes_rows() -> list[str]:
    """Return a row for each setting with references of equal bytes: FLASH and pow-d at equal rounds and equal bytes.

    The last columns are training of all clients at FLASH's bytes, minus random selection at these bytes, and FLASH's
    loss with random selection.
    """
    rows = []
    for cell, setting in claims.read_study(STUDY)["settings"].items():
        if not has_clock(cell):
            runs = claims.read_runs(STUDY, cell)
            compared = [("flash", "random"), ("flash", "random_flash_bytes"), ("powd", "random")]
            compared += [("powd", "random_powd_bytes"), ("full_flash_bytes", "random_flash_bytes")]
            compared += [("random_robust", "random")]
            cells = [format_interval(differences(cell, *pair)) if pair[0] in runs else NO_RUNS for pair in compared]
            rows.append(f"| {setting['label']} | {' | '.join(cells)} |")
    return rows


def subtract_settings(method: str, cell: str, other_cell: str) -> str:
    """Return the difference of a method to random selection in one setting minus that in another, over the seeds."""
    pairs = zip(differences(cell, method), differences(other_cell, method), strict=True)
    return format_interval([value - other_value for value, other_value in pairs])


def count_diverged(cell: str, method: str, study: str = STUDY) -> int:
    """Return the number of runs of a method that end at chance level."""
    return sum(value < CHANCE for value in claims.read_runs(study, cell)[method].values())


def list_stable_cells(study: str = STUDY) -> list[str]:
    """Return the settings in which no run of random selection ends at chance level."""
    return [cell for cell in list_cells(study) if not count_diverged(cell, "random", study)]


def mean_over_settings(method: str, study: str = STUDY) -> str:
    """Return a method's difference to random selection, averaged over the stable settings, over the seeds."""
    values_by_cell = [differences(cell, method, study=study) for cell in list_stable_cells(study)]
    return format_interval([average(values) for values in zip(*values_by_cell, strict=True)])


def mean_over_all_settings(method: str) -> str:
    """Return a method's difference to random selection, averaged over all settings, over the seeds."""
    values_by_cell = [differences(cell, method) for cell in list_cells()]
    return format_interval([average(values) for values in zip(*values_by_cell, strict=True)])


def mean_rows() -> list[str]:
    """Return a row for each method and the averaged model: the mean difference over the stable settings."""
    methods = ("auto", "random_average", *PUBLISHED, "low_ratio")
    return [f"| {name_method(method)} | {mean_over_settings(method)} |" for method in methods]


def sentences() -> list[str]:
    """Return the sentences with computed numbers, in the order of the docs."""
    gains, losses = list_significant(1), list_significant(-1)
    published = [sum(method in PUBLISHED for _, method in significant) for significant in (gains, losses)]
    clean_cells = [cell for cell in list_cells() if not is_noisy(cell)]
    best_clean = max((average(differences(cell, method)), method, cell) for cell in clean_cells for method in PUBLISHED)
    low_ratio_clean = [average(differences(cell, "low_ratio")) for cell in clean_cells]
    seeking = [average(differences(cell, method)) for cell in ("noise40", "noise70") for method in LOSS_SEEKING]
    n_seeking = sum(is_significant(cell, m, -1) for cell in ("noise40", "noise70") for m in LOSS_SEEKING)
    diverged = {method: count_diverged("pair_flips", method) for method in ("random", *claims.list_methods(STUDY))}
    n_seeds = len(claims.read_runs(STUDY, "equal")["random"])
    stable_noisy = [cell for cell in list_stable_cells() if is_noisy(cell)]
    early_gains = {cell: early_difference(cell, "fedcbs") for cell in ("one_class", "two_classes")}
    return [
        f"Holm over all {len(list_tests())} tests leaves {len(gains)} significant gains and {len(losses)} significant "
        "losses of half a point or more",
        f"{published[0]} of these gains and {published[1]} of these losses are of published selectors",
        f"In the {len(clean_cells)} settings without label noise, the largest mean difference of a published selector "
        f"is {best_clean[0]:+.1f} points",
        f"Fed-CBS has {early_gains['one_class']:+.1f} points at round {SHORT_HORIZON} with one class per client and "
        f"{average(differences('one_class', 'fedcbs')):+.1f} at round 480, with two classes "
        f"{early_gains['two_classes']:+.1f} and, at round 240, {average(differences('two_classes', 'fedcbs')):+.1f}",
        f"pow-d, Oort and PyramidFL have {max(seeking):+.1f} to {min(seeking):+.1f} points in the two settings with "
        f"bimodal label noise. They are significantly worse in {n_seeking} of 6 tests",
        f"`low_ratio` has {max(low_ratio_clean):+.1f} to {min(low_ratio_clean):+.1f} points where labels are right",
        f"the {len(list_stable_cells())} other settings",
        f"In `pair_flips`, {sum(diverged.values())} of {n_seeds * len(diverged)} runs end at chance level, "
        f"{diverged['random']} of {n_seeds} with random selection",
        f"significantly worse in {sum(is_significant(cell, 'auto', -1) for cell in list_cells())} settings and better "
        f"in {sum(is_significant(cell, 'auto', 1) for cell in list_cells())}",
        f"PyramidFL's difference changes by {subtract_settings('pyramidfl', 'speeds_by_class', 'dirichlet_speeds')} "
        f"points and Oort's by {subtract_settings('oort', 'speeds_by_class', 'dirichlet_speeds')}",
        f"Fed-CBS's difference changes by {subtract_settings('fedcbs', 'hours_by_class', 'hours')} points",
        "training of all clients has "
        + ", ".join(
            format_interval(differences(cell, "full_flash_bytes", "random_flash_bytes")) for cell in stable_noisy
        )
        + " points",
    ]


def mean_over_cells(method: str, cells: list[str]) -> float:
    """Return a method's difference to random selection, averaged over settings and seeds."""
    return average(average(differences(cell, method)) for cell in cells)


def readme_sentences() -> list[str]:
    """Return the sentences of README with computed numbers, without line breaks."""
    clean_cells = [cell for cell in list_cells() if not is_noisy(cell)]
    noisy_cells = [cell for cell in list_stable_cells() if is_noisy(cell)]
    best = max(average(differences(cell, method)) for cell in clean_cells for method in PUBLISHED)
    clean_means, noisy_means = (
        sorted(-mean_over_cells(method, cells) for method in PUBLISHED) for cells in (clean_cells, noisy_cells)
    )
    over_all, with_unstable = (
        sorted(-float(mean_over(method).split()[0]) for method in PUBLISHED)
        for mean_over in (mean_over_settings, mean_over_all_settings)
    )
    assert min(over_all[0], clean_means[0], noisy_means[0]) > 0, "all are behind"
    assert set(README_SETTINGS) < set(list_stable_cells())
    assert (count_diverged("pair_flips", "random"), len(list_stable_cells())) == (1, len(list_cells()) - 1)
    return [
        f"each of six is behind it on average, by {over_all[0]:.1f} to {over_all[-1]:.1f} points over "
        f"{len(list_stable_cells())}",
        f"In the {len(clean_cells)} settings without label noise, the six published selectors are up to "
        f"{clean_means[-1]:.1f} points behind it on average, and none gains more than {best:.1f} in a setting",
        f"In the {len(noisy_cells)} with label noise they are {noisy_means[0]:.1f} to {noisy_means[-1]:.1f} points "
        "behind",
        f"Over these {len(list_stable_cells())} settings, after equal rounds or time, `selector=auto` gains "
        f"{mean_over_settings('auto')} points, "
        "and an [average of random's models](docs/results.md#evaluate-an-average-of-the-models) "
        f"{mean_over_settings('random_average')}",
        f"With it, the six are {with_unstable[0]:.1f} to {with_unstable[-1]:.1f} points behind, and `auto` has "
        f"{mean_over_all_settings('auto')}",
        f"one Holm correction over all {len(list_tests())} comparisons",
    ]


def test_the_docs_and_the_readme_have_the_results_of_the_study() -> None:
    rows = [*mean_rows(), *stable_rows(), *horizon_rows(), *equal_bytes_rows()]
    assert [row for row in rows if row not in DOCS.splitlines()] == []
    assert [text for text in sentences() if text not in DOCS_TEXT] == []
    assert [text for text in readme_sentences() if text not in README_TEXT] == []


def test_the_expectations_of_the_plan_have_the_stated_outcomes() -> None:
    label_skew = ("one_class", "two_classes", "dirichlet")
    assert not any(is_significant(cell, method, 1) for cell in label_skew for method in PUBLISHED)
    assert all(is_significant(cell, method, -1) for cell in ("noise40", "noise70") for method in LOSS_SEEKING)
    assert max(claims.list_methods(STUDY), key=lambda method: mean_over_cells(method, list_cells())) == "auto"


if __name__ == "__main__":
    print(*horizon_rows(), "", *equal_bytes_rows(), "", *sentences(), "", *readme_sentences(), sep="\n")
