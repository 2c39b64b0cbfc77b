"""Comparisons of runs on several federations: only equal ones are paired."""

import csv

import numpy as np
import pytest

from compare_toy import ACC, run, table
from fedcohort.observe.comparison import render, verdict
from fedcohort.observe.comparison.goals import set_all
from fedcohort.observe.comparison.runs import sort
from fedcohort.observe.comparison.series import Series
from fedcohort.observe.comparison.table import tabulate

SKEWED, EVEN = {"partition": "dirichlet", "partition.alpha": "0.1"}, {"partition": "iid"}


def test_the_federation_that_most_runs_have_is_compared() -> None:
    """Of random the two runs on the federation of the newest sweep count, although three are on another one."""
    runs = [run("random", seed, 0.5, options=SKEWED) for seed in range(3)]
    runs += [
        run(word, seed, value, options=EVEN) for word, value in (("random", 0.2), ("ucb", 0.3)) for seed in range(2)
    ]
    found = table(runs)
    assert {cell[0]: entry.value.n for cell, entry in found.entries.items()} == {"random": 2, "ucb": 2}
    assert found.entries["random", ""].value.mean == pytest.approx(0.2)
    assert any(note.startswith("left out: random-fedavg-s0-0") for note in found.notes)


def test_seeds_of_different_federations_are_no_pairs() -> None:
    runs = [run(word, seed, 0.2 + seed / 100, options=EVEN) for word in ("random", "ucb") for seed in range(3)]
    runs += [run("flash", seed, 0.9 - seed / 100, options=SKEWED) for seed in range(3)]
    found = table(runs)
    assert found.entries["flash", ""].difference is None
    assert found.entries["ucb", ""].difference is not None
    assert "flash" not in verdict.tell(found)[0]
    assert any(note.startswith("not compared with random: flash, of another federation") for note in found.notes)
    (row,) = (row for row in csv.DictReader(render.render_csv(found).splitlines()) if row["selector"] == "flash")
    assert (row["diff"], row["verdict"], row["baseline"]) == ("", "", "")


def test_the_best_of_another_federation_is_no_target() -> None:
    """Of random and ucb alone random has the best of a federation of its own; both of two federations are nobody's."""
    found = sort([run("random", 0, 0.2, options=EVEN), run("ucb", 0, 0.3, options=SKEWED)], "selector", None, ACC)
    values = np.array([0.1, 0.3])
    histories = {cell: {0: Series(*[values] * 5)} for cell in found.cells}
    goals, notes = set_all(found, histories, ["random"], None, 1)
    assert {cell[0]: list(of) for cell, of in goals.items()} == {"random": [0], "ucb": []}
    assert notes == ["no target: ucb, of another federation than random"]
    assert not any(set_all(found, histories, ["random", "ucb"], None, 1)[0].values())


@pytest.mark.parametrize(("rows", "compared"), [("partition", "iid"), ("partition.alpha", "9"), ("name", "a")])
def test_federations_that_are_what_is_compared_are_compared(rows: str, compared: str) -> None:
    """By the word that makes them differ, or by names that a user gave."""
    first = EVEN if rows == "partition" else {**SKEWED, "partition.alpha": "9"}
    runs = [run("random", seed, 0.2 + seed / 100, name="a", options=first) for seed in range(3)]
    runs += [run("random", seed, 0.5 - seed / 100, name="b", options=SKEWED) for seed in range(3)]
    found = tabulate(sort(runs, rows, None, ACC), rows, None, ACC, compared, "auto")
    assert [gap.n for gap in verdict.list_gaps(found)] == [3]


def test_a_setting_is_no_others_beginning() -> None:
    """An aggregator may set `client`; `clients`, how many there are, it may not."""
    runs = [
        run("random", seed, 0.2, agg, clients=n) for seed in (0, 1) for agg, n in (("fedavg", "50"), ("fedprox", "9"))
    ]
    found = sort(runs, "agg", None, ACC)
    assert found.federations["fedavg", ""] != found.federations["fedprox", ""]


def test_methods_own_options_are_no_other_federation() -> None:
    runs = [run("random", seed, 0.2, options=EVEN) for seed in range(2)]
    runs += [run("ucb", seed, 0.3, options={**EVEN, "selector.gamma": "0.7"}) for seed in range(2)]
    found = sort(runs, "selector", None, ACC)
    assert len(set(found.federations.values())) == 1


def test_one_seed_says_nothing_in_a_file_either() -> None:
    runs = [run("random", seed, 0.2) for seed in range(2)]
    runs += [run("ucb", 1, 0.3), run("oort", 7, 0.4)]
    rows = {row["selector"]: row for row in csv.DictReader(render.render_csv(table(runs)).splitlines())}
    assert rows["ucb"]["verdict"] == "of one seed in common with"
    assert rows["oort"]["verdict"] == "without a seed in common with"
