"""The numbers on the rules of selector=auto in docs/diagnose.md follow from the results of studies/auto_rules.

`PYTHONPATH=src:tests python -m whole.test_auto_rules_claims` prints the rows of the table and the sentence on tests.
"""

import math

import pandas as pd

from whole import claims

STUDY = "auto_rules"
DOCS = claims.ROOT / "docs" / "diagnose.md"
VARIANTS = ("auto_all_clients", "auto_unbalanced", "auto_no_probation", "auto_no_cover", "auto_no_persistence")
NO_CELL = "–"


def differences(cell: str, method: str, reference: str) -> dict[int, float]:
    """Return differences by seed, in points; {} for a method that is not run in the setting."""
    is_run = method in claims.read_runs(STUDY, cell)
    return claims.paired_differences(STUDY, cell, method, reference) if is_run else {}


def format_difference(cell: str, method: str, reference: str) -> str:
    values = differences(cell, method, reference).values()
    if not values:
        return NO_CELL
    return claims.format_interval(values) if max(map(abs, values)) >= 0.05 else "0"


def table_rows() -> list[str]:
    """Return a row for each setting: auto against both references, and auto without a rule against auto."""
    rows = []
    for cell, setting in claims.read_study(STUDY)["settings"].items():
        cells = [f"{claims.average(claims.read_runs(STUDY, cell)['random'].values()):.1f}"]
        cells += [format_difference(cell, "auto", reference) for reference in ("random", "random_same_flops")]
        cells += [format_difference(cell, variant, "auto") for variant in VARIANTS]
        rows.append(f"| {setting['label']} | {' | '.join(cells)} |")
    return rows


def list_tests() -> dict[tuple[str, str, str], float]:
    """Return the adjusted p by setting, method and reference; Holm over all differences of the table."""
    pairs = [(cell, "auto", "random") for cell in claims.read_study(STUDY)["settings"]]
    pairs += [(cell, variant, "auto") for cell, _, _ in pairs for variant in VARIANTS]
    tests = {pair: values for pair in pairs if (values := list(differences(*pair).values()))}
    adjusted = claims.adjust_by_holm([claims.t_test_p(values) for values in tests.values()])
    return {pair: p for pair, p in zip(tests, adjusted, strict=True) if math.isfinite(p)}


def sentences() -> list[str]:
    """Return how many differences are significant, and what happens where wrong labels agree."""
    adjusted = list_tests()
    n_significant = sum(p < claims.ALPHA for p in adjusted.values())
    by_seed = claims.read_runs(STUDY, "agreeing60")
    failed = [value for value in by_seed["auto"].values() if value < 5]
    return [
        f"Of {len(adjusted)} differences between runs that are not equal, {n_significant} are significant",
        f"With 60 % of the clients, `auto` left out the clean clients in {len(failed)} of {len(by_seed['auto'])} runs, "
        f"and the accuracy fell below 5 %. In 1 run it found them, and reached {max(by_seed['auto'].values()):.1f} %.",
    ]


def test_the_page_has_the_results_of_the_study() -> None:
    page = " ".join(DOCS.read_text().split())
    assert [row for row in table_rows() if row not in page] == []
    assert [text for text in sentences() if text not in page] == []
    readme = " ".join((claims.ROOT / "README.md").read_text().split())
    assert "[below 5 % accuracy in 3 of 5 runs]" in readme
    assert sentences()[1].count(" in 3 of 5 runs, and the accuracy fell below 5 %") == 1
    assert {
        len(by_seed)
        for cell in claims.read_study(STUDY)["settings"]
        for by_seed in claims.read_runs(STUDY, cell).values()
    } == {5}


def test_only_leaving_noisy_clients_out_is_a_significant_rule() -> None:
    significant = {(cell, method) for (cell, method, _), p in list_tests().items() if p < claims.ALPHA}
    cells = ("dirichlet_noisy40", "two_classes_noisy40")
    assert significant == {(cell, method) for cell in cells for method in ("auto", "auto_all_clients")}


def test_no_selector_gains_half_a_point_with_equal_clients() -> None:
    for study, cell in (
        ("regimes_digits", "none"),
        ("regimes_fashion", "none"),
        ("plateau_digits", "equal"),
        ("auto_unseen", "equal"),
    ):
        numbers = pd.read_csv(claims.ROOT / "studies" / study / "tables" / "numbers.csv")
        gains = numbers.loc[(numbers["cell"] == cell) & (numbers["role"] == "method"), "diff"]
        assert 100 * gains.max() < claims.MIN_DIFFERENCE


if __name__ == "__main__":
    print(*table_rows(), *sentences(), sep="\n")
