"""Comparisons: numbers with closed forms, runs that don't belong together, and what is written of them."""
# ruff: noqa: F811

import csv
import math
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mlflow.entities import Metric, Param, RunTag

from callback.databases import Logs, logs  # noqa: F401
from fedcohort.compare import draw, fetch, render
from fedcohort.compare.__main__ import Options, compare, main, parsed
from fedcohort.compare.runs import ONE, Run, Sorted, sort
from fedcohort.compare.table import Table, difference, lower_is_better, mean, tabulate
from fedcohort.errors import FedcohortError, OptionError, TrackingError
from fedcohort.refusals import in_one_line
from yaml_words import CONFIGS

ACC = "test/acc"


def run(selector: str, seed: int, acc: float, agg: str = "fedavg", started: int = 0, **params: str) -> Run:
    facts = {"selector": selector, "agg": agg, "seed": str(seed), "rounds": "5", **params}
    number = f"{selector}-{agg}-s{seed}-{started}"
    return Run(number, number, "finished", started, facts, {"sweep_id": "one"}, {ACC: acc, "test/loss": 1.0})


def both(first: Sequence[float], second: Sequence[float]) -> list[Run]:
    return [run(word, s, v) for word, of in (("random", first), ("ucb", second)) for s, v in enumerate(of)]


def table(found: Sequence[Run], cols: str | None = None, metric: str = ACC, better: str = "auto") -> Table:
    return tabulate(sort(found, "selector", cols, metric), "selector", cols, metric, "random", better)


def noted(found: Sorted, words: str) -> list[str]:
    return [line for line in found.notes if words in line]


# --- numbers ---------------------------------------------------------------------------------------------------------
def test_a_mean_with_its_interval() -> None:
    """1, 2, 3: s^2 = (1 + 0 + 1) / 2 = 1, and t_{.975, 2} = 4.30265 (any table), so half = 4.30265 / sqrt(3)."""
    found = mean([1.0, 2.0, 3.0])
    assert (found.mean, found.std, found.n) == (2.0, 1.0, 3)
    assert found.half == pytest.approx(4.30265 / math.sqrt(3), rel=1e-5)
    one = mean([4.0])
    assert one.mean == 4.0
    assert math.isnan(one.std)
    assert math.isnan(one.half)


def test_a_difference_is_paired_over_common_seeds() -> None:
    """Gaps 1, 2, 3 at seeds 0, 1, 2: t = 2 / (1 / sqrt(3)) = sqrt(12) with 2 degrees of freedom, for which the
    distribution has the closed form p = 1 - t / sqrt(t^2 + 2) = 1 - sqrt(12 / 14)."""
    base = {0: 10.0, 1: 20.0, 2: 40.0, 7: 5.0}
    found = difference({0: 11.0, 1: 22.0, 2: 43.0, 8: 1.0}, base)
    assert (found.over.mean, found.over.std, found.over.n) == (2.0, 1.0, 3)
    assert found.p == pytest.approx(1 - math.sqrt(12 / 14))


@pytest.mark.parametrize(
    ("values", "n", "why"),
    [
        ({5: 1.0}, 0, "n=0 common seeds: no interval, no test"),
        ({0: 2.0}, 1, "n=1 common seeds: no interval, no test"),
        ({0: 1.3, 1: 2.3}, 2, "the same difference for every seed: no test"),
    ],
)
def test_a_difference_that_can_not_be_tested_says_so(values: Mapping[int, float], n: int, why: str) -> None:
    found = difference(values, {0: 1.0, 1: 2.0})
    assert (found.over.n, found.why) == (n, why)
    assert math.isnan(found.p)


def test_bold_is_what_is_clear_of_all_others() -> None:
    apart = table(both([0.10, 0.11, 0.12], [0.80, 0.81, 0.82]))
    assert {cell: entry.best for cell, entry in apart.entries.items()} == {
        ("random", ONE): False,
        ("ucb", ONE): True,
    }
    near = table(both([0.10, 0.11, 0.12], [0.11, 0.12, 0.13]))
    assert not any(entry.best for entry in near.entries.values())
    assert "**" not in render.markdown(near)
    low = table(both([0.10, 0.11, 0.12], [0.80, 0.81, 0.82]), better="low")
    assert low.entries["random", ONE].best


def test_a_single_seed_is_never_bold() -> None:
    assert not any(entry.best for entry in table(both([0.1], [0.9])).entries.values())
    assert not any(entry.best for entry in table(both([0.1], [0.9, 0.91])).entries.values())


def test_which_way_is_better() -> None:
    lower = ("test/loss", "clients/loss_mean", "clients/acc_var", "time/virtual_s", "comm/up_bytes", "select/share_max")
    assert all(map(lower_is_better, lower))
    assert not any(map(lower_is_better, (ACC, "clients/acc_worst5", "clients/jain", "round/arrived")))


# --- runs ------------------------------------------------------------------------------------------------------------
def test_missing_seeds_are_named() -> None:
    found = sort([*both([0.1, 0.2], [0.3, 0.4]), run("random", 2, 0.5)], "selector", None, ACC)
    assert noted(found, "missing") == ["missing: ucb has no run of seed 2"]


def test_a_run_of_other_settings_is_left_out_and_named() -> None:
    odd = run("ucb", 2, 0.9, **{"selector.discount": "0.9"})
    found = sort([*both([0.1, 0.2], [0.3, 0.4]), odd], "selector", None, ACC)
    assert sorted(found.cells["ucb", ONE]) == [0, 1]
    (line,) = noted(found, "left out")
    assert line.endswith("it differs from the other runs of ucb: selector.discount=0.9 (others none)")


def test_of_equal_runs_the_newest_counts() -> None:
    found = sort([*both([0.1, 0.2], [0.3, 0.4]), run("ucb", 1, 0.9, started=1)], "selector", None, ACC)
    assert found.cells["ucb", ONE][1].metrics[ACC] == 0.9
    (line,) = noted(found, "left out")
    assert "ucb-fedavg-s1-0" in line
    assert "newer" in line


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda r: replace(r, status="running"), "it is running"),
        (lambda r: replace(r, metrics={}), "it has no test/acc"),
        (lambda r: replace(r, params={"seed": "0"}), "it has no selector"),
        (lambda r: replace(r, params={"selector": "ucb"}), "it has no seed"),
    ],
)
def test_a_run_that_can_not_be_used_is_named(change: Callable[[Run], Run], why: str) -> None:
    found = sort([*both([0.1], [0.2]), change(run("ucb", 4, 0.1))], "selector", None, ACC)
    assert noted(found, "left out") == [f"left out: ucb-fedavg-s4-0 (ucb-feda): {why}"]
    assert sorted(found.cells["ucb", ONE]) == [0]


def test_a_cell_of_other_settings_is_marked_and_not_bold() -> None:
    long = [run("ucb", s, 0.9 + s / 100, rounds="50") for s in range(3)]
    others = [run(word, s, 0.1 + s / 100) for word in ("random", "powd") for s in range(3)]
    found = table([*others, *long])
    assert "also differs: rounds is 5 for powd, random; 50 for ucb" in found.notes
    assert [cell for cell, entry in found.entries.items() if entry.odd] == [("ucb", ONE)]
    assert not found.entries["ucb", ONE].best
    assert "| ucb | 91.0 ± 1.0 (n=3) † |" in render.markdown(found)


def test_options_of_what_is_compared_are_no_other_difference() -> None:
    plain = [run("random", s, 0.1, **{"selector.weights": "uniform"}) for s in (0, 1)]
    prox = [run("random", s, 0.2, agg="fedprox", regulariser="prox", **{"agg.mu": "1"}) for s in (0, 1)]
    found = sort([*plain, *prox, run("ucb", 0, 0.1)], "selector", "agg", ACC)
    assert noted(found, "also differs") == ["also differs: regulariser is none for fedavg; prox for fedprox"]
    assert found.odd == frozenset()


def test_several_commits_and_values_that_are_not_finite_are_named() -> None:
    found = [replace(run("ucb", s, 0.1 / (1 - s) if s < 1 else math.inf), tags={"commit": f"c{s}"}) for s in (0, 1)]
    notes = sort(found, "selector", None, ACC).notes
    assert "the runs are of several commits: c0 (1), c1 (1)" in notes
    assert "not finite: ucb-fedavg-s1-0 (ucb-feda) has test/acc=inf, and so has its cell" in notes


def test_numbers_are_in_the_order_of_numbers() -> None:
    found = [run("ucb", 0, 0.1, cohort=str(m)) for m in (10, 9, 100)]
    assert sort(found, "cohort", None, ACC).rows == ["9", "10", "100"]


def test_names_that_nobody_knows() -> None:
    found = both([0.1], [0.2])
    with pytest.raises(OptionError, match=r"cols must be a parameter or tag of the runs \(seed|selector"):
        sort(found, "selector", "nothing", ACC)
    with pytest.raises(OptionError, match="metric must be one of test/acc, test/loss, got 'acc'"):
        sort(found, "selector", None, "acc")
    with pytest.raises(OptionError, match=r"baseline must be a value of selector \(ucb\), got 'random'"):
        table([run("ucb", 0, 0.1)])


# --- texts -----------------------------------------------------------------------------------------------------------
def test_markdown_latex_and_csv() -> None:
    """ucb - random is .1, .2, .3: mean .2, s .1, half 4.30265 * .1 / sqrt(3) = .2484, p as above with t = sqrt(12)."""
    found = table(both([0.1, 0.1, 0.1], [0.2, 0.3, 0.4]))
    text = render.markdown(found)
    assert "| random | 10.0 ± 0.0 (n=3) |" in text
    assert "| ucb | 30.0 ± 10.0 (n=3) |" in text
    assert "| ucb | +20.0 [-4.8, +44.8], p = 0.074 (n=3) |" in text
    tex = render.latex(found)
    assert r"ucb & $30.0 \pm 10.0$ (3) \\" in tex
    assert tex.count(r"\begin{tabular}{lr}") == 2
    rows = list(csv.DictReader(render.comma_separated(found).splitlines()))
    assert [row["selector"] for row in rows] == ["random", "ucb"]
    assert float(rows[1]["diff"]) == pytest.approx(0.2)
    assert float(rows[1]["diff_p"]) == pytest.approx(1 - math.sqrt(12 / 14))
    assert rows[0]["diff"] == rows[0]["baseline"] == ""
    assert rows[1]["seeds"] == "0 1 2"


def test_one_seed_is_said_to_be_one() -> None:
    text = render.markdown(table(both([0.1], [0.3])))
    assert "| ucb | 30.000 (n=1) |" in text
    assert "| ucb | +20.000 (n=1 common seeds: no interval, no test) |" in text
    assert "- n<2: random, ucb: no standard deviation, no interval" in text


def test_latex_is_escaped() -> None:
    assert render.tex("ucb_cs & 5 % ± n<2") == r"ucb\_cs \& 5 \% $\pm$ n$<$2"


@pytest.mark.parametrize(
    ("metric", "largest", "factor", "name"),
    [
        (ACC, 1.0, 100.0, "%"),
        ("clients/acc_var", 300.0, 1.0, "%²"),
        ("test/loss", 2.0, 1.0, "nats"),
        ("comm/up_bytes", 3e6, 1e-6, "MB"),
        ("comp/client_flops", 2e12, 1e-12, "TFLOP"),
        ("time/virtual_s", 500.0, 1.0, "s"),
        ("clients/jain", 1.0, 1.0, ""),
    ],
)
def test_units(metric: str, largest: float, factor: float, name: str) -> None:
    found = render.unit_of(metric, largest)
    assert (found.factor, found.name) == (pytest.approx(factor), name)


# --- curves ----------------------------------------------------------------------------------------------------------
def test_curves_are_averaged_at_common_rounds() -> None:
    def series(rounds: list[float], value: list[float]) -> draw.Series:
        nothing = np.zeros(len(rounds))
        return draw.Series(np.array(rounds, float), np.array(value, float), nothing, nothing)

    band = draw.by_round([series([0, 1, 2], [1, 2, 3]), series([0, 2, 4], [3, 7, 9])])
    assert band.x.tolist() == [0, 2]
    assert band.mean.tolist() == [2, 5]
    assert band.std.tolist() == pytest.approx([math.sqrt(2), math.sqrt(8)])


def test_between_two_rounds_a_run_is_as_good_as_after_the_first() -> None:
    """One run's rounds end at 0, 10, 20 s, the other's at 0 and 4 s: the common span is [0, 4], where the first still
    has its initial value, and the second has another one at 4 s alone."""
    times = [np.array([0.0, 10.0, 20.0]), np.array([0.0, 4.0])]
    band = draw.by_cost(times, [np.array([1.0, 5.0, 9.0]), np.array([3.0, 7.0])])
    assert (band.x[0], band.x[-1]) == (0.0, 4.0)
    assert band.mean[:-1].tolist() == [2.0] * (len(band.x) - 1)
    assert band.mean[-1] == 4.0


def test_no_curve_where_no_time_was_logged() -> None:
    assert len(draw.by_cost([np.full(2, math.nan)], [np.zeros(2)]).x) == 0


# --- the command -----------------------------------------------------------------------------------------------------
def fill(logs: Logs) -> None:
    """Two selectors, two seeds, three rounds, as the tracker logs them; one more of another sweep."""
    client = logs.client()
    experiment = client.create_experiment("fedcohort")
    for i, (word, seed, sweep) in enumerate(
        [("a", 0, "s"), ("a", 1, "s"), ("b", 0, "s"), ("b", 1, "s"), ("b", 2, "t")]
    ):
        made = client.create_run(experiment, start_time=i).info.run_id
        params = [Param("selector", word), Param("seed", str(seed)), Param("dataset", "digits")]
        cost = {"time/virtual_s": 7.0, "comm/down_bytes": 1e6, "comm/up_bytes": 2e6}
        metrics = [Metric(name, each * step, 0, step) for name, each in cost.items() for step in range(4)]
        metrics += [Metric(ACC, 0.1 * step + 0.01 * seed + 0.05 * (word == "b") * step, 0, step) for step in range(4)]
        client.log_batch(made, metrics, params, [RunTag("status", "finished"), RunTag("sweep_id", sweep)])


def asked(logs: Logs, **changes: str) -> Options:
    return replace(Options(tracking_uri=logs.uri, out=str(logs.path / "out")), **changes)


def test_a_sweep_becomes_tables_and_figures(logs: Logs) -> None:
    fill(logs)
    text, files = compare(asked(logs, sweep="s", baseline="a"))
    assert "| b | +15.00 [+15.00, +15.00], the same difference for every seed: no test (n=2) |" in text
    assert [file.name for file in files] == ["table.md", "table.tex", "table.csv", "means.png", "curves.png"]
    assert files[0].read_text() == text
    assert all(file.read_bytes()[:4] == b"\x89PNG" for file in files if file.suffix == ".png")
    text, files = compare(asked(logs, filter="params.dataset = 'digits'", curves="false"))
    assert "missing: a has no run of seed 2" in text
    assert "curves.png" not in [file.name for file in files]


def test_runs_that_are_not_there(logs: Logs) -> None:
    fill(logs)
    with pytest.raises(TrackingError, match=r"no runs in experiment 'fedcohort' with tags\.sweep_id = 'u'"):
        compare(asked(logs, sweep="u"))
    with pytest.raises(OptionError, match="experiment must be one of Default, fedcohort, got 'x'"):
        compare(asked(logs, experiment="x"))
    with pytest.raises(OptionError, match=r"filter: MLflow can't read 'what\?'"):
        compare(asked(logs, filter="what?"))
    assert not (logs.path / "out").exists()


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    where = tmp_path / "none.db"
    with pytest.raises(OptionError, match="tracking_uri must be a database that exists"):
        fetch.connected(fetch.Query(f"sqlite:///{where}", "fedcohort"))
    assert not where.exists()


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("rows", "can't read 'rows': type name=value"),
        ("row=agg", "there is no option 'row'"),
        ("rows=null", "rows must be a text"),
        ("cols=selector", "cols must be another parameter than rows=selector"),
        ("better=up", "better must be one of auto, high, low"),
        ("curves=1", "curves must be one of true, false"),
    ],
)
def test_mistakes(word: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FedcohortError):
        parsed([word])
    assert in_one_line(lambda: main([word]), [word], Path(CONFIGS)) == 2
    text = capsys.readouterr().err
    assert text.startswith(line)
    assert text.count("\n") == 1


def test_the_command_has_help() -> None:
    line = [sys.executable, "-m", "fedcohort.compare", "--help"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "baseline=null" in done.stdout
