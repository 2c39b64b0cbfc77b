"""Which runs are compared: cells, runs that are left out, and notes."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from comparison_harness import ACC, compare_runs, find_notes, make_run, make_runs
from fedcohort.errors import OptionError
from fedcohort.results.matching.match import match
from fedcohort.results.matching.tracked_run import Run

EVEN = {"partition": "iid"}


def test_a_note_says_when_the_last_rounds_ended() -> None:
    """A budget is reached in a round, which ends beyond it: by the last values slow rounds have had more time."""
    tags, budget = {"rounds_done": "3", "ended_by": "until.virtual_s"}, {"until.virtual_s": "3600"}
    runs = [
        replace(run, tags=tags, params={**run.params, **budget}, metrics={**run.metrics, "time/virtual_s": seconds})
        for run, seconds in zip(make_runs([0.1, 0.2], [0.3, 0.4]), (3600.0, 3660.0, 4500.0, 3601.0), strict=True)
    ]
    (line,) = find_notes(match(runs, "selector", None, ACC), "ended by")
    assert line.startswith("ended by until.virtual_s=3600: 4 runs, after 3 rounds, ")
    assert line.endswith(", the last round of each after 60 min 0 s to 75 min 0 s")
    without_clock = [replace(run, metrics={ACC: run.metrics[ACC]}) for run in runs]
    by_bytes = [replace(run, tags={**tags, "ended_by": "until.bytes"}) for run in runs]
    for budget_runs, budget_text in ((without_clock, "until.virtual_s=3600"), (by_bytes, "until.bytes=?")):
        (line,) = find_notes(match(budget_runs, "selector", None, ACC), "ended by")
        assert line == f"ended by {budget_text}: 4 runs, after 3 rounds"


def test_missing_seeds_are_named() -> None:
    matching = match([*make_runs([0.1, 0.2], [0.3, 0.4]), make_run("random", 2, 0.5)], "selector", None, ACC)
    assert find_notes(matching, "missing") == ["missing: ucb has no run of seed 2"]


def test_a_run_of_other_settings_is_left_out_and_named() -> None:
    other_run = make_run("ucb", 2, 0.9, options={"selector.discount": "0.9"})
    matching = match([*make_runs([0.1, 0.2], [0.3, 0.4]), other_run], "selector", None, ACC)
    assert sorted(matching.cells["", "ucb"]) == [0, 1]
    (line,) = find_notes(matching, "left out")
    assert line.endswith("it differs from the other runs of ucb: selector.discount=0.9 (others none)")


def test_a_run_that_ended_early_counts_and_is_named() -> None:
    """The first of three was stopped by a callback; what the second did isn't known, the third did all."""
    runs = make_runs([0.1, 0.2, 0.3], [0.3, 0.4, 0.5])
    runs[0] = replace(runs[0], tags={"rounds_done": "2"})
    runs[2] = replace(runs[2], tags={"rounds_done": "5"})
    matching = match(runs, "selector", None, ACC)
    assert sorted(matching.cells["", "random"]) == [0, 1, 2]
    assert find_notes(matching, "early") == ["ended early: random-fedavg-s0-0 (MLflow's random-f) (2 of 5 rounds)"]
    with_failed_run = [replace(runs[0], status="failed"), *runs[1:]]
    assert find_notes(match(with_failed_run, "selector", None, ACC), "early") == []


def test_of_equal_runs_the_newest_counts() -> None:
    matching = match([*make_runs([0.1, 0.2], [0.3, 0.4]), make_run("ucb", 1, 0.9, started=1)], "selector", None, ACC)
    assert matching.cells["", "ucb"][1].metrics[ACC] == 0.9
    (line,) = find_notes(matching, "left out")
    assert "ucb-fedavg-s1-0" in line
    assert "newer" in line


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: replace(r, status="running"), "it is running"),
        (lambda r: replace(r, metrics={}), "it has no test/acc"),
        (lambda r: replace(r, params={"seed": "0"}), "it has no selector"),
        (lambda r: replace(r, params={"selector": "ucb"}), "it has no seed"),
    ],
)
def test_a_run_that_can_not_be_used_is_named(change: Callable[[Run], Run], reason: str) -> None:
    matching = match([*make_runs([0.1], [0.2]), change(make_run("ucb", 4, 0.1))], "selector", None, ACC)
    assert find_notes(matching, "left out") == [f"left out: ucb-fedavg-s4-0 (MLflow's ucb-feda): {reason}"]
    assert sorted(matching.cells["", "ucb"]) == [0]


def test_a_cell_of_other_settings_is_marked() -> None:
    longer_runs = [make_run("ucb", s, 0.9 + s / 100, rounds="50") for s in range(3)]
    ordinary = [make_run(selector, s, 0.1 + s / 100) for selector in ("random", "powd") for s in range(3)]
    matching = match([*ordinary, *longer_runs], "selector", None, ACC)
    assert "also differs: rounds is 5 for powd, random; 50 for ucb" in matching.notes
    assert matching.atypical_cells == {("", "ucb")}


def test_options_of_the_compared_group_may_differ() -> None:
    plain = [make_run("random", s, 0.1, options={"selector.weights": "uniform"}) for s in (0, 1)]
    prox = [make_run("random", s, 0.2, agg="fedprox", regulariser="prox", options={"agg.mu": "1"}) for s in (0, 1)]
    matching = match([*plain, *prox, make_run("ucb", 0, 0.1)], "selector", "agg", ACC)
    assert find_notes(matching, "also differs") == ["also differs: regulariser is none for fedavg; prox for fedprox"]
    assert matching.atypical_cells == frozenset()


def test_several_commits_and_values_that_are_not_finite_are_named() -> None:
    runs = [replace(make_run("ucb", s, 0.1 / (1 - s) if s < 1 else math.inf), tags={"commit": f"c{s}"}) for s in (0, 1)]
    notes = match(runs, "selector", None, ACC).notes
    assert "the runs are of several commits: c0 (1), c1 (1)" in notes
    one_commit = [replace(run, tags={"commit": "c0", "dirty": "true"}) for run in runs]
    assert "all runs are of commit c0 with uncommitted changes" in match(one_commit, "selector", None, ACC).notes
    assert "diverged: ucb-fedavg-s1-0 (MLflow's ucb-feda) ended with test/acc=inf" in notes


def test_numbers_are_in_the_order_of_numbers() -> None:
    runs = [make_run("ucb", 0, 0.1, cohort=str(m)) for m in (10, 9, 100)]
    assert [cell[1] for cell in match(runs, "cohort", None, ACC).cells] == ["9", "10", "100"]


def test_unknown_names_are_rejected() -> None:
    runs = make_runs([0.1], [0.2])
    with pytest.raises(OptionError, match=r"cols must be a parameter or tag of the runs \(seed|selector"):
        match(runs, "selector", "nothing", ACC)
    with pytest.raises(OptionError, match="metric must be one of test/acc, test/loss, got 'acc'"):
        match(runs, "selector", None, "acc")
    with pytest.raises(OptionError, match=r"baseline must be a value of selector \(ucb\), got 'random'"):
        compare_runs([make_run("ucb", 0, 0.1)])


def test_a_forced_resume_is_noted() -> None:
    runs = make_runs([0.5, 0.6], [0.7, 0.8])
    runs[0].tags.update(commits="01234567, 89abcdef+", forced="after round 3: torch 9.9 (was 2.13)")  # type: ignore[attr-defined]
    notes = match(runs, "selector", None, ACC).notes
    assert any("several commits: 01234567 then 89abcdef+ (1)" in note for note in notes)
    assert any(note.startswith("resumed by force: random-") and note.endswith("torch 9.9 (was 2.13)") for note in notes)


def test_each_seed_may_have_another_budget() -> None:
    """As where another run's time is the budget; two runs of a seed with two budgets are two settings."""
    runs = [make_run("random", seed, 0.5, options={"until.virtual_s": f"{seed + 1}00"}) for seed in range(3)]
    assert list(match(runs, "selector", None, ACC).cells["", "random"]) == [0, 1, 2]
    matching = match(
        [*runs, make_run("random", 0, 0.7, started=9, options={"until.virtual_s": "900"})], "selector", None, ACC
    )
    assert len(matching.cells["", "random"]) == 1
    assert find_notes(matching, "until.virtual_s=")


def test_budgets_of_their_own_are_compared_seed_by_seed() -> None:
    """Seeds 1 and 2 of ucb continued without the budget: they are not paired, nor is a seed that random lacks."""
    budgets = {0: "300", 1: "400", 2: "500"}
    random = [make_run("random", s, 0.5, options={"until.virtual_s": budgets[s]}) for s in (1, 2)]
    methods = [make_run("ucb", s, 0.6, options={"until.virtual_s": budget}) for s, budget in budgets.items()]
    matching = match([*random, *methods], "selector", None, ACC)
    assert (find_notes(matching, "also differs"), matching.atypical_cells) == ([], frozenset())
    longer = [make_run("ucb", s, 0.6, options={"until.virtual_s": "300" if not s else "null"}) for s in budgets]
    random.append(make_run("random", 0, 0.5, options={"until.virtual_s": "300"}))
    matching = match([*random, *longer], "selector", None, ACC)
    assert find_notes(matching, "also differs") == [
        "also differs: until.virtual_s on seed 1 is 400 for random; null for ucb",
        "also differs: until.virtual_s on seed 2 is 500 for random; null for ucb",
    ]
    assert matching.atypical_cells == {("", "random"), ("", "ucb")}


def test_notes_name_a_run_by_its_folder() -> None:
    """The start of MLflow's id looked like the hash in a folder's name, and was in none."""
    run = make_run("ucb", 0, math.inf)
    run_in_folder = replace(run, tags={**run.tags, "folder": "/far/logs/runs/ucb-fedavg-digits-930a3273-s0"})
    (note,) = find_notes(match([run_in_folder], "selector", None, ACC), "diverged")
    assert note.startswith("diverged: ucb-fedavg-digits-930a3273-s0 ended with test/acc=inf")


def test_a_setting_is_no_others_beginning() -> None:
    """An aggregator may set `client`; `clients`, how many there are, it may not."""
    runs = [
        make_run("random", seed, 0.2, agg, clients=n)
        for seed in (0, 1)
        for agg, n in (("fedavg", "50"), ("fedprox", "9"))
    ]
    matching = match(runs, "agg", None, ACC)
    assert matching.federations["", "fedavg"] != matching.federations["", "fedprox"]


def test_methods_own_options_are_no_other_federation() -> None:
    runs = [make_run("random", seed, 0.2, options=EVEN) for seed in range(2)]
    runs += [make_run("ucb", seed, 0.3, options={**EVEN, "selector.gamma": "0.7"}) for seed in range(2)]
    matching = match(runs, "selector", None, ACC)
    assert len(set(matching.federations.values())) == 1
