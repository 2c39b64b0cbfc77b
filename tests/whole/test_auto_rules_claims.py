"""The numbers on the rules of selector=auto in docs/diagnose.md follow from the results of studies/auto_rules.

`PYTHONPATH=src:tests python -m whole.test_auto_rules_claims` prints the rows of the table and the sentence on tests.
"""

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


def sentence() -> str:
    """Return how many differences are significant, Holm over all of the table."""
    pairs = [(cell, "auto", "random") for cell in claims.read_study(STUDY)["settings"]]
    pairs += [(cell, variant, "auto") for cell, _, _ in pairs for variant in VARIANTS]
    tests = [values for pair in pairs if (values := list(differences(*pair).values()))]
    adjusted = claims.adjust_by_holm([claims.t_test_p(values) for values in tests])
    n_tests, n_significant = sum(p == p for p in adjusted), sum(p < claims.ALPHA for p in adjusted)
    return f"Of {n_tests} differences between runs that are not equal, {n_significant} are significant"


def test_the_page_has_the_results_of_the_study() -> None:
    page = " ".join(DOCS.read_text().split())
    assert [row for row in table_rows() if row not in page] == []
    assert sentence() in page
    assert {
        len(by_seed)
        for cell in claims.read_study(STUDY)["settings"]
        for by_seed in claims.read_runs(STUDY, cell).values()
    } == {5}


if __name__ == "__main__":
    print(*table_rows(), sentence(), sep="\n")
