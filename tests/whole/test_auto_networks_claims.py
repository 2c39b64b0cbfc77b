"""The numbers on convolutional networks in docs/diagnose.md follow from the results of studies/auto_networks.

`PYTHONPATH=src:tests python -m whole.test_auto_networks_claims` prints the rows of the table and the sentences.
"""

from whole import claims

STUDY = "auto_networks"
DOCS = claims.ROOT / "docs" / "diagnose.md"
METHODS = ("low_ratio", "fedcbs", "flash", "random_robust", "oracle_clean")
HORIZONS = (40, 120, 240)
SAME_BYTES = "random_same_bytes"
NO_CELL = "–"


def differences_at(horizon: int, cell: str, method: str) -> list[float]:
    """Return a method's differences in the last sixth of the rounds by seed, in points; [] if it is not run there."""
    return claims.differences_in_rounds(STUDY, cell, method, horizon * 5 // 6 + 1, horizon)


def table_rows() -> list[str]:
    """Return a row for each setting: random's accuracy, auto at three horizons, and other methods at the last."""
    rows = []
    for cell, setting in claims.read_study(STUDY)["settings"].items():
        cells = [f"{claims.average(claims.read_runs(STUDY, cell)['random'].values()):.1f}"]
        cells += [claims.format_interval(differences_at(horizon, cell, "auto")) for horizon in HORIZONS]
        by_method = [differences_at(HORIZONS[-1], cell, method) for method in METHODS]
        cells += [claims.format_interval(values) if values else NO_CELL for values in by_method]
        rows.append(f"| {setting['label']} | {' | '.join(cells)} |")
    return rows


def mean_over_settings(method: str) -> list[float]:
    """Return a method's difference to random selection by seed, averaged over the settings, in points."""
    by_cell = [differences_at(HORIZONS[-1], cell, method) for cell in claims.read_study(STUDY)["settings"]]
    return [claims.average(values) for values in zip(*by_cell, strict=True)]


def sentences() -> list[str]:
    """Return the sentences on tests, on means over the settings, and on cost."""
    settings = list(claims.read_study(STUDY)["settings"])
    methods = [method for method in claims.list_methods(STUDY) if method not in ("random", SAME_BYTES)]
    tests = [(cell, method) for cell in settings for method in methods if method in claims.read_runs(STUDY, cell)]
    values = [list(claims.paired_differences(STUDY, *test).values()) for test in tests]
    adjusted = claims.adjust_by_holm([claims.t_test_p(test_values) for test_values in values])
    better = [
        method
        for (_, method), p, test_values in zip(tests, adjusted, values, strict=True)
        if p < claims.ALPHA and claims.average(test_values) > 0
    ]
    bytes_by_method = claims.read_results(STUDY).groupby("selector")["bytes"].mean()
    low_ratio, auto = (bytes_by_method[method] / bytes_by_method["random"] for method in ("low_ratio", "auto"))
    at_equal_bytes = [list(claims.paired_differences(STUDY, cell, "auto", SAME_BYTES).values()) for cell in settings]
    equal_bytes_text = claims.format_interval([claims.average(values) for values in zip(*at_equal_bytes, strict=True)])
    means = {method: claims.format_interval(mean_over_settings(method)) for method in ("auto", *METHODS[:3])}
    return [
        f"Holm over all {len(tests)} tests of the study leaves {len(better)} significant gains, "
        f"{better.count('auto')} of them of `auto`",
        f"Over the five settings `auto` gains {means['auto']} points, `low_ratio` {means['low_ratio']}, `flash` "
        f"{means['flash']} and `fedcbs` {means['fedcbs']}",
        f"`auto` spends {auto:.2f} times the bytes of random selection, `low_ratio` {low_ratio:.2f} times",
        f"At equal bytes `auto` gains {equal_bytes_text} points over the settings",
    ]


def test_the_page_has_the_results_of_the_study() -> None:
    page = " ".join(DOCS.read_text().split())
    assert [text for text in [*table_rows(), *sentences()] if text not in page] == []
    readme = " ".join((claims.ROOT / "README.md").read_text().split())
    tests_text, _, _, equal_bytes_text = sentences()
    assert tests_text == "Holm over all 23 tests of the study leaves 4 significant gains, 2 of them of `auto`"
    assert f"and {equal_bytes_text.split(' gains ')[1].split(' points')[0]} over five" in readme
    assert (
        min(claims.average(differences_at(HORIZONS[-1], cell, "auto")) for cell in claims.read_study(STUDY)["settings"])
        > 0
    )


def test_the_gain_of_auto_grows_where_clients_are_noisy_and_shrinks_elsewhere() -> None:
    for cell in claims.read_study(STUDY)["settings"]:
        first_gain, last_gain = (
            claims.average(differences_at(horizon, cell, "auto")) for horizon in (HORIZONS[0], HORIZONS[-1])
        )
        assert (last_gain > first_gain) == ("noise" in cell)
        if "noise" in cell:
            assert claims.average(differences_at(HORIZONS[-1], cell, "random_robust")) < 0


def test_every_method_has_five_seeds_in_every_setting() -> None:
    for cell in claims.read_study(STUDY)["settings"]:
        assert {len(by_seed) for by_seed in claims.read_runs(STUDY, cell).values()} == {5}


if __name__ == "__main__":
    print(*table_rows(), *sentences(), sep="\n")
