"""The page of a comparison: its sentences, tables, files, and names that are markup."""

import csv
import math
import re
from pathlib import Path

import pytest

from comparison_harness import ACC, compare_runs, make_run, make_runs
from fedcohort.report.comparison import page
from fedcohort.report.comparison.page import list_verdicts
from fedcohort.report.comparison.tables import format_p, make_result_table
from fedcohort.results.matching.tracked_run import Run
from fedcohort.results.target import Target

ATTACK = "<script>alert(1)</script>"


def make_runs_to_compare(ucb: float = 0.1, name: str = "ucb") -> list[Run]:
    """Three seeds of random, and of a method that differs by about `ucb`."""
    noise = (0.002, 0.0, -0.002)
    runs = [make_run("random", seed, 0.5 + seed / 100) for seed in range(3)]
    return runs + [make_run(name, seed, 0.5 + ucb + seed / 100 + noise[seed]) for seed in range(3)]


def test_a_verdict_states_interval_correction_seeds_and_cost() -> None:
    """Differences 10.2, 10, 9.8 points: s = .2, half = 4.30265 * .2 / sqrt(3) = .50."""
    runs = make_runs_to_compare()
    for run in runs[3:]:
        run.metrics.update({"comm/down_bytes": 3.07e6, "comm/up_bytes": 0.0})  # type: ignore[attr-defined]
    for run in runs[:3]:
        run.metrics.update({"comm/down_bytes": 1e6, "comm/up_bytes": 0.0})  # type: ignore[attr-defined]
    assert list_verdicts(compare_runs(runs)) == [
        "ucb is better than random: +10.00 points [9.50, 10.50], p < 0.001 after Holm's correction over 1 method, "
        "3 seeds, at 3.07 times the bytes."
    ]
    worse = compare_runs(make_runs_to_compare(-0.1))
    assert "| -10.00 [-10.50, -9.50] |" in make_result_table(worse).markdown(), "as in the sentence"
    assert "| +10.00 [9.50, 10.50] |" in make_result_table(compare_runs(runs)).markdown()
    (line,) = list_verdicts(worse)
    assert line.startswith("ucb is worse than random: -10.00 points [-10.50, -9.50]")
    assert line.endswith("over 1 method, 3 seeds."), "nothing is said of a cost that is not known"


def test_an_open_verdict_names_the_required_seeds() -> None:
    """Differences 0, 4 and -1 points: s = 2.65, and 57 seeds show 1 point with a power of .8."""
    runs = [make_run("random", seed, 0.5) for seed in range(3)]
    runs += [make_run("ucb", seed, 0.5 + gain) for seed, gain in enumerate((0.0, 0.04, -0.01))]
    (line,) = list_verdicts(compare_runs(runs))
    assert line == (
        "not settled against random: ucb +1.0 points [-5.6, 7.6]. To detect a true difference of 1 point with a "
        "power of 80 %, a paired t-test at level 0.05 needs 57 seeds. The present 3 seeds detect 8.6 "
        "points."
    )


def test_an_open_verdict_explains_an_interval_without_zero() -> None:
    """Differences 10, 13 and 7 points: s = 3, t = 5.77, p = .0287 with two degrees of freedom, and .0575 after Holm."""
    runs = [make_run("random", seed, 0.5) for seed in range(3)]
    runs += [make_run(name, s, 0.5 + gain) for name in ("oort", "ucb") for s, gain in enumerate((0.1, 0.13, 0.07))]
    (line,) = list_verdicts(compare_runs(runs))
    interval = "+10.0 points [2.5, 17.5] (not corrected; p = 0.057 after Holm's correction)"
    assert line.startswith(f"not settled against random: oort {interval}, ucb {interval}. To detect")


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([0.6], "ucb has 1 seed in common with random (+10.0 points): a verdict needs 3."),
        (
            [0.6, 0.6, 0.6],
            "ucb differs from random by +10.0 points, same on all 3 seeds: there is no interval and no test.",
        ),
        ([0.6, math.inf, 0.6], "ucb diverged on 1 of 3 seeds and is not compared."),
    ],
)
def test_a_missing_test_has_a_reason(values: list[float], line: str) -> None:
    assert list_verdicts(compare_runs(make_runs([0.5, 0.5, 0.5], values))) == [line]


def test_a_verdict_names_the_condition_that_diverged() -> None:
    baseline = [0.5, math.inf, 0.5]
    (line,) = list_verdicts(compare_runs(make_runs(baseline, [0.6, 0.61, 0.6])))
    assert line == "ucb is not compared, as random diverged on 1 of 3 seeds."
    (line,) = list_verdicts(compare_runs(make_runs(baseline, [math.inf, 0.61, 0.6])))
    assert line == "ucb diverged on 1 of 3 seeds and is not compared."


def test_settings_have_sentences_of_their_own() -> None:
    gains = {"random": (0.0, 0.0, 0.0), "ucb": (0.1, 0.101, 0.102)}
    runs = [make_run(s, n, 0.5 + gains[s][n], agg) for s in gains for n in range(3) for agg in ("a", "b")]
    lines = list_verdicts(compare_runs(runs, cols="agg"))
    assert [line.partition(" is better")[0] for line in lines] == ["a: ucb", "b: ucb"]
    assert list_verdicts(compare_runs(runs, cols="agg", baseline=None)) == []


def test_a_result_other_than_the_default_is_named_first(tmp_path: Path) -> None:
    answer = compare_runs(make_runs_to_compare(), result="last", horizon=2)
    page.write_comparison_files(answer, tmp_path / "out", curves=False)
    text = (tmp_path / "out" / "report.html").read_text()
    assert '<p class="question">6 runs of all runs; last evaluation of each run, horizon 2 rounds</p>' in text
    assert "The result of a run is its last evaluation, not the default mean" in text


@pytest.mark.usefixtures("rendered_figures")
def test_all_files_are_written_and_older_ones_go(tmp_path: Path) -> None:
    answer = compare_runs(make_runs_to_compare(), metrics=[ACC, "test/loss"], target=Target(0.3), axis="rounds")
    text, files = page.write_comparison_files(answer, tmp_path / "out")
    names = [file.name for file in files]
    assert names[:7] == ["report.html", "table.md", "table.tex", "table.csv", "target.md", "target.tex", "target.csv"]
    figures = {f"{name}.{suffix}" for name in ("forest", "differences", "curves") for suffix in ("png", "pdf", "svg")}
    assert set(names[7:]) == figures
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(names)
    assert text == (tmp_path / "out" / "table.md").read_text()
    html = (tmp_path / "out" / "report.html").read_text()
    assert html.count("<img") == 3
    assert re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?!data:)[^"'\s>]+""", html) == []
    (tmp_path / "out" / "means.png").write_bytes(b"")
    _, files = page.write_comparison_files(compare_runs(make_runs_to_compare()), tmp_path / "out", curves=False)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {file.name for file in files}
    assert "target.csv" not in {file.name for file in files}


def test_the_csv_has_all_digits_of_every_cell_and_metric() -> None:
    answer = compare_runs(make_runs_to_compare(), metrics=[ACC, "test/loss"], target=Target(0.3), axis="rounds")
    rows = list(csv.DictReader(make_result_table(answer).csv().splitlines()))
    assert [(row["selector"], row["metric"]) for row in rows] == [
        ("ucb", ACC),
        ("random", ACC),
        ("ucb", "test/loss"),
        ("random", "test/loss"),
    ]
    assert float(rows[0]["difference"]) == answer.headline.results["", "ucb"].difference.mean  # type: ignore[union-attr]
    assert (rows[0]["verdict"], rows[1]["verdict"], rows[0]["difference_n"]) == ("better", "", "3.0")


def test_markup_in_a_name_is_shown_as_text(tmp_path: Path) -> None:
    answer = compare_runs(make_runs_to_compare(name=ATTACK), rows="selector")
    text, _ = page.write_comparison_files(answer, tmp_path / "out")
    html = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; is better than random" in html
    assert r"\<script>alert(1)\</script>" in text
    assert "<script" not in text.replace(r"\<", "")


@pytest.mark.parametrize("baseline", ["random", None])
def test_one_seed_has_no_interval_in_captions_and_tables(tmp_path: Path, baseline: str | None) -> None:
    for n_seeds in (1, 2):
        values = [0.5, 0.6][:n_seeds], [0.6, 0.8][:n_seeds]
        answer = compare_runs(make_runs(*values), baseline=baseline, target=Target(0.3), axis="rounds")
        text, (html, *_) = page.write_comparison_files(answer, tmp_path / "out")
        assert ["95 % interval" in page_text for page_text in (text, html.read_text())] == [n_seeds > 1] * 2
        assert ("of one seed" in text) == (n_seeds == 1)


def test_without_a_baseline_there_are_means(tmp_path: Path) -> None:
    _, files = page.write_comparison_files(
        compare_runs(make_runs_to_compare(), baseline=None), tmp_path / "out", curves=False
    )
    assert "means.png" in {file.name for file in files}
    assert "A verdict needs a baseline" in (tmp_path / "out" / "report.html").read_text()


def test_p_values_are_short() -> None:
    assert [format_p(p) for p in (1.0, 0.0123, 0.0005, 0.00049, math.nan)] == [
        "1.000",
        "0.012",
        "0.001",
        "< 0.001",
        "–",
    ]
