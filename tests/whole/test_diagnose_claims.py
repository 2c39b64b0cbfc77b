"""The numbers on selection by diagnosis in docs/diagnose.md follow from the results of studies/auto_unseen.

`PYTHONPATH=src:tests python -m whole.test_diagnose_claims` prints the rows of the table and the sentences.
"""

from collections.abc import Iterable
from functools import cache

import numpy as np
import pandas as pd
import yaml

from fedcohort.report.diagnosis import MEASURED_GAINS
from whole import claims

STUDY = "auto_unseen"
DOCS = claims.ROOT / "docs" / "diagnose.md"
NOISY = ("noisy40", "wide_noise", "pair_flips", "dirichlet_noisy40", "two_classes_noisy40", "people_noisy40")
UNEVEN = ("one_class", "dirichlet")
KINDS = {
    **dict.fromkeys(("noisy40", "wide_noise", "pair_flips", "people_noisy40"), "noise"),
    **dict.fromkeys(("dirichlet_noisy40", "two_classes_noisy40"), "noise_and_classes"),
    **dict.fromkeys(UNEVEN, "classes"),
    **dict.fromkeys(("equal", "two_classes_all20", "blurred30", "people"), "random"),
    "speeds": "speed",
}
EARLY_ROUND = 40
SAME = 0.05  # points; smaller differences are printed as 0
FIXED = ("low_ratio", "fedcbs", "flash")
COLUMNS = ("low_ratio", "fedcbs", "flash", "random_robust", "auto_robust", "oracle_clean")


def settings() -> list[str]:
    return list(claims.read_study(STUDY)["settings"])


@cache
def seeds() -> list[int]:
    """Return the seeds with which every method has run in every setting."""
    runs = [claims.read_runs(STUDY, cell) for cell in settings()]
    return sorted(set.intersection(*(set(by_seed) for by_row in runs for by_seed in by_row.values())))


def differences(cell: str, row: str, reference: str = "random") -> dict[int, float]:
    """Return differences to a reference by seed, in points; {} for a method that did not run in the setting."""
    runs = claims.read_runs(STUDY, cell)
    if row not in runs or reference not in runs:
        return {}
    return {seed: runs[row][seed] - runs[reference][seed] for seed in seeds()}


def early_differences(cell: str) -> list[float]:
    """Return auto's differences at round 40, from means over the last sixth of these rounds."""
    curves = pd.read_parquet(claims.ROOT / "studies" / STUDY / "curves.parquet")
    is_late = (curves["step"] <= EARLY_ROUND) & (curves["step"] > EARLY_ROUND * 5 / 6) & (curves["cell"] == cell)
    means = curves[is_late].groupby(["selector", "seed"])["value"].mean()
    return [100 * float(means["auto", seed] - means["random", seed]) for seed in seeds()]


def named_method(cell: str) -> dict[int, float]:
    """Return the differences of the method that the diagnosis names, fixed from the start; zeros for random."""
    row = "low_ratio" if cell in NOISY else "fedcbs" if cell in UNEVEN else "random"
    return differences(cell, row)


def spell(values: Iterable[float]) -> str:
    """Return the mean with its interval, or 0 if all values are below the printed precision."""
    numbers = list(values)
    if not numbers:
        return "–"
    return "0" if np.max(np.abs(numbers)) < SAME else claims.format_interval(numbers)


def table_rows() -> list[str]:
    """Return the rows of the table: random, auto early and late, at equal bytes, named method, and other methods."""
    definitions = claims.read_study(STUDY)["settings"]
    rows = []
    for name in settings():
        runs = claims.read_runs(STUDY, name)
        early = "–" if name == "speeds" else spell(early_differences(name))
        numbers = [
            f"{claims.average(runs['random'][seed] for seed in seeds()):.1f}",
            early,
            spell(differences(name, "auto").values()),
            spell(differences(name, "auto", "random_same_bytes").values()),
            spell(named_method(name).values()),
            *(spell(differences(name, row).values()) for row in COLUMNS),
        ]
        rows.append(f"| {definitions[name]['label']} | {' | '.join(numbers)} |")
    return rows


def mean_over_settings(row: str, reference: str = "random") -> list[float]:
    """Return by seed the mean difference over the settings in which the fixed methods ran."""
    names = [name for name in settings() if differences(name, FIXED[0])]
    return [claims.average(differences(name, row, reference)[seed] for name in names) for seed in seeds()]


def sentences() -> list[str]:
    names = settings()
    adjusted = claims.adjust_by_holm([claims.t_test_p(differences(name, "auto").values()) for name in names])
    means = [claims.average(differences(name, "auto").values()) for name in names]
    better = sum(p < claims.ALPHA and mean > 0 for p, mean in zip(adjusted, means, strict=True))
    worse = sum(p < claims.ALPHA and mean < 0 for p, mean in zip(adjusted, means, strict=True))
    same_bytes = [
        claims.average(by_seed.values())
        for name in names
        if (by_seed := differences(name, "auto", "random_same_bytes"))
    ]
    fixed = {row: spell(mean_over_settings(row)) for row in FIXED}
    robust = {name: claims.average(d.values()) for name in names if (d := differences(name, "random_robust"))}
    return [
        f"significantly better than random selection in {better} of {len(names)} settings and worse in {worse}",
        f"lowest mean difference at equal bytes is {min(same_bytes):+.1f} points",
        f"gains {spell(mean_over_settings('auto', 'random_same_bytes'))} points at equal bytes",
        f"`auto` has {spell(mean_over_settings('auto'))}",
        f"It has {spell(mean_of_named_method())} points",
        f"`auto` is {spell(lead_over_named_method()).removeprefix('+')} points ahead of it",
        *(f"`{row}` {text}" for row, text in fixed.items()),
        f"between {min(robust.values()):+.1f} and {max(robust.values()):+.1f} points",
        *(
            f"{name} {spell(differences('speeds', row).values())}"
            for name, row in (("`auto`", "auto"), ("Oort", "oort"), ("PyramidFL", "pyramidfl"))
        ),
        f"{len(seeds())} paired seeds",
        "with Holm over all {} tests of the study, in {}".format(*count_study_wide_gains()),
    ]


def count_study_wide_gains() -> tuple[int, int]:
    """Return the study's number of tests, and in how many settings auto is significantly better with Holm over them."""
    table = pd.read_csv(claims.ROOT / "studies" / STUDY / "tables" / "numbers.csv")
    tests = table[table["holm_p_all"].notna()]
    n_better = int(((tests["selector"] == "auto") & (tests["diff"] > 0) & (tests["holm_p_all"] < claims.ALPHA)).sum())
    return len(tests), n_better


def lead_over_named_method() -> list[float]:
    """Return by seed auto's mean lead over the named method at equal rounds, over the settings without a clock."""
    pairs = zip(mean_over_settings("auto"), mean_of_named_method(), strict=True)
    return [auto - reference for auto, reference in pairs]


def mean_of_named_method() -> list[float]:
    """Return by seed the named method's mean difference to random selection over the settings without a clock."""
    names = [name for name in settings() if differences(name, FIXED[0])]
    return [claims.average(named_method(name)[seed] for name in names) for seed in seeds()]


def gains() -> dict[str, list[dict[str, str]]]:
    """Return the gains that pages of diagnoses show: auto against random selection at equal bytes, by kind."""
    definitions = claims.read_study(STUDY)["settings"]
    listed: dict[str, list[dict[str, str]]] = {}
    for name in settings():
        same_bytes = differences(name, "auto", "random_same_bytes")  # the clock ends the runs of `speeds`
        points = spell((same_bytes or differences(name, "auto")).values())
        listed.setdefault(KINDS[name], []).append({"setting": definitions[name]["label"], "points": points})
    return listed


def test_pages_of_diagnoses_show_the_gains_of_the_study() -> None:
    assert gains() == MEASURED_GAINS


def diagnosis_sentences() -> list[str]:
    """Return the sentences on AUC and intervals that follow from benchmarks/diagnoses.csv."""
    table = pd.read_csv(claims.ROOT / "benchmarks" / "diagnoses.csv")
    coverage = 100 * table.groupby("setting")["coverage"].mean()
    auc = table.groupby("setting")["auc"].mean().dropna()
    blurred, flipped = table[table["setting"] == "blurred30"], table[table["setting"] == "pair_flips"]
    return [
        f"95 % intervals held {coverage.min():.0f} to {coverage.max():.0f} % of the rates",
        f"an AUC of {auc.min():.2f} or more in {len(auc)} federations",
        f"in {(blurred['case'] == 'persists').sum()} of {len(blurred)} runs",
        f"taken for noisy in {(flipped['case'] == 'persists').sum()} of {len(flipped)} runs",
    ]


def test_the_criteria_of_the_plan_are_met() -> None:
    """Check the planned limits: nowhere worse, better than fixed methods, AUC 0.9, one in five blurred runs."""
    adjusted = claims.adjust_by_holm([claims.t_test_p(differences(name, "auto").values()) for name in settings()])
    means = [claims.average(differences(name, "auto").values()) for name in settings()]
    assert not any(p < claims.ALPHA and mean < 0 for p, mean in zip(adjusted, means, strict=True))
    best_fixed = max(claims.average(mean_over_settings(row)) for row in FIXED)
    assert claims.average(mean_over_settings("auto", "random_same_bytes")) > best_fixed
    table = pd.read_csv(claims.ROOT / "benchmarks" / "diagnoses.csv")
    has_groups = table["setting"].isin([name for name in NOISY if name != "wide_noise"])
    assert table.loc[has_groups, "auc"].min() >= 0.9
    assert table.loc[table["setting"] == "blurred30", "case"].eq("persists").mean() <= 0.2
    lost = {
        name: claims.average(differences(name, "auto").values()) - claims.average(named_method(name).values())
        for name in KINDS
        if name != "speeds"
    }
    n_behind = sum(points > 1 for points in lost.values())
    text = " ".join(DOCS.read_text().split())
    assert "The plan has four criteria, which are all met." in text
    assert f"in {n_behind} of twelve settings, by up to {max(lost.values()):.1f} points" in text


def test_the_named_method_follows_from_most_diagnoses_of_a_setting() -> None:
    table = pd.read_csv(claims.ROOT / "benchmarks" / "diagnoses.csv")
    advice = table.groupby("setting")["advice"].agg(lambda values: values.mode()[0]).to_dict()
    assert advice == {name: kind.partition("_and")[0] for name, kind in KINDS.items() if name in advice}
    assert {name for name, value in advice.items() if value == "noise"} == set(NOISY)
    assert {name for name, value in advice.items() if value == "classes"} == set(UNEVEN)


def test_the_page_and_its_template_have_the_results_of_the_diagnoses() -> None:
    template = claims.ROOT / "src" / "fedcohort" / "report" / "templates" / "diagnosis.md.j2"
    text, all_sentences = " ".join(DOCS.read_text().split()), diagnosis_sentences()
    assert all_sentences[0] in template.read_text()
    assert all(sentence in text for sentence in all_sentences)


def test_the_default_learning_rate_was_the_best_for_random_selection_in_most_federations() -> None:
    table = pd.read_csv(claims.ROOT / "studies" / STUDY / "tuning.csv").set_index(["setting", "lr"]).mean(axis=1)
    best = table.unstack().idxmax(axis=1)
    text = " ".join((claims.ROOT / "docs" / "protocol.md").read_text().split())
    assert f"selection in {(best == 0.1).sum()} of {len(best)} federations" in text
    learning_rates = {cell: node["overrides"][-1] for cell, node in claims.read_study(STUDY)["settings"].items()}
    assert all(learning_rates[cell] == f"client.lr={best[cell]}" for cell in best.index)


def test_the_page_has_the_results_of_the_study() -> None:
    text = DOCS.read_text()
    for row in table_rows():
        assert row in text
    page_text, readme = (" ".join(page.split()) for page in (text, (claims.ROOT / "README.md").read_text()))
    for sentence in sentences():
        assert sentence in page_text
    gain_text = spell(mean_over_settings("auto", "random_same_bytes"))
    assert f"its mean gain at equal bytes is positive: {gain_text} over twelve" in readme
    loss = -claims.average(differences("one_class", "random_robust").values())
    where = " ".join((claims.ROOT / "docs" / "where_selection_pays.md").read_text().split())
    assert f"with one class per client, it costs random selection {loss:.1f} points" in where
    definition = claims.read_study(STUDY)
    assert {"rounds=100", "client.epochs=2", "client.batch=20", "clients=50", "cohort=10"} <= set(definition["common"])


if __name__ == "__main__":
    print(
        *table_rows(),
        *sentences(),
        *diagnosis_sentences(),
        yaml.safe_dump(gains(), allow_unicode=True, sort_keys=False),
        sep="\n",
    )
