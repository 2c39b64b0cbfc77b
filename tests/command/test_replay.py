"""A log is enough to choose again: the same selector chooses the same, another one says where it parts."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from config_options import CONFIGS
from fedcohort.command import line
from fedcohort.command.replay import ReplayResult, main, make_selectors, replay_selector
from fedcohort.errors import CheckpointError, FedcohortError, IncompatibleConfig, OptionError
from fedcohort.record.run_log import find_signal_columns, read_run_log
from fedcohort.startup.command_line import run_with_one_line_errors
from run_harness import run_training

LOGGED = (
    *("callback=default", "callback.figures=null", "callback.summary=null", "callback.progress=null", "rounds=6"),
    *("split.limit=360", "eval.every=6", "eval.clients_every=0", "checkpoint.every=1000"),
)
BERNOULLI_AVAILABILITY = ("availability=bernoulli", "availability.p=0.6")


def run(logs: Path, *overrides: str) -> Path:
    return run_training(logs, *LOGGED, *overrides).folder


def repeat(folder: Path, *overrides: str) -> ReplayResult:
    log = read_run_log(folder)
    return replay_selector(log, *make_selectors(log, overrides, Path(CONFIGS)))


@pytest.fixture(scope="module")
def flash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("flash"), "selector=flash")


def test_a_run_with_over_selection_is_replayed_identically(tmp_path: Path) -> None:
    folder = run(tmp_path, "deadline=over_commit", "selector=oort", "availability=diurnal", "availability.day_s=2000")
    assert repeat(folder) == ReplayResult(n_rounds=6)


@pytest.fixture(scope="module")
def ucb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("ucb"), "selector=ucb_cs")


@pytest.mark.parametrize(
    "overrides",
    [
        ("selector=random", "selector.weights=proportional", *BERNOULLI_AVAILABILITY),
        ("selector=round_robin", *BERNOULLI_AVAILABILITY),
        ("selector=powd", *BERNOULLI_AVAILABILITY),
        ("selector=ucb_cs", "deadline=fixed", "deadline.partial_work=false"),
        ("selector=flash", "deadline=fixed", *BERNOULLI_AVAILABILITY),
        ("selector=flash", "selector.context=fresh"),
    ],
)
def test_the_same_selector_selects_the_same_clients(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    assert repeat(run(tmp_path, *overrides)) == ReplayResult(6)


@pytest.mark.parametrize(
    "overrides",
    [
        ("selector=fedcbs", *BERNOULLI_AVAILABILITY),
        (
            "selector=feddiverse",
            "selector.pretrain=2",
            "selector.epochs=1",
            "selector.batch=100",
            *BERNOULLI_AVAILABILITY,
        ),
        ("selector=hcsfed", "selector.strata=3", *BERNOULLI_AVAILABILITY),
        ("selector=hcsfed", "selector.recluster=2", "selector.agg=stratified"),
        ("selector=fedcor", "selector.warmup=1", "selector.interval=2", "selector.first_steps=5", "selector.steps=5"),
        ("selector=fedcor",),  # no shadow round comes of it
        ("selector=pyramidfl", "deadline=fixed", *BERNOULLI_AVAILABILITY),
        ("selector=pyramidfl", "selector.passes=3", "client.steps=7"),
        (
            "selector=fedpns",
            "selector.keep=0.3",
            "deadline=fixed",
            "deadline.partial_work=false",
            *BERNOULLI_AVAILABILITY,
        ),
    ],
)
def test_vectors_and_static_signals_are_logged(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    folder = run(tmp_path, *overrides)
    assert repeat(folder) == ReplayResult(6)


@pytest.fixture(scope="module")
def fedcbs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("fedcbs"), "selector=fedcbs")


def test_logged_vectors_are_read_back_unchanged(fedcbs: Path) -> None:
    """A row is as wide as it was, in order, whatever sorts its columns; counts are whole numbers."""
    facts = read_run_log(fedcbs).facts
    assert facts["label_counts"].shape == (12, 10)
    assert facts["label_counts"].dtype.kind == "i"
    assert facts["label_counts"].sum(1).tolist() == facts["n_train"].tolist()
    names = [f"signal_a.b.{i}" for i in (0, 1, 10, 11, *range(2, 10))]
    assert find_signal_columns([*names, "signal_c", "score"]) == {
        "a.b": [f"signal_a.b.{i}" for i in range(12)],
        "c": "signal_c",
    }


def test_static_signals_are_read_from_the_log(fedcbs: Path) -> None:
    """With the classes of another client each, Fed-CBS chooses others."""
    log = read_run_log(fedcbs)
    reversed_log = dataclasses.replace(log, facts={**log.facts, "label_counts": log.facts["label_counts"][::-1].copy()})
    assert replay_selector(reversed_log, *make_selectors(reversed_log, (), Path(CONFIGS))).first_difference is not None


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ("selector=fedpns", "selector.loss_check=true"),
            "selector=fedpns reads server_loss, which .*: whole updates, values that the server",
        ),
        (
            ("selector=flash_progress",),
            "selector=flash_progress reads .*server_val_loss, .*: whole updates, values that the server",
        ),
        (
            ("selector=hcsfed", "selector.variant=feddiverse_paper"),
            "selector=hcsfed reads update, which .*: whole updates, values that the server",
        ),
        (("selector=hcsfed", "selector.rate=0.7"), "queries compressed_gradient in round 1, which"),
    ],
)
def test_signals_too_large_to_log_are_named(tmp_path: Path, overrides: tuple[str, ...], message: str) -> None:
    folder = run(tmp_path, *overrides, "rounds=2")
    with pytest.raises(IncompatibleConfig, match=message):
        repeat(folder)


def test_runs_with_late_updates_are_refused(tmp_path: Path) -> None:
    folder = run(tmp_path, "deadline=buffered", "rounds=2")
    with pytest.raises(IncompatibleConfig, match="with deadline=buffered late updates arrive in later rounds"):
        repeat(folder)


def test_rounds_with_different_widths_are_replayed(tmp_path: Path) -> None:
    """Who doesn't arrive has no row and no column; places beyond the round's width are null."""
    log = read_run_log(
        run(tmp_path, "selector=fedpns", "deadline=fixed", "deadline.partial_work=false", *BERNOULLI_AVAILABILITY)
    )
    width = max(len(logged_round.arrived_ids) for logged_round in log.rounds)
    narrow = [logged_round for logged_round in log.rounds if 0 < len(logged_round.arrived_ids) < width]
    assert any(len(logged_round.arrived_ids) < len(logged_round.cohort) for logged_round in narrow)
    for logged_round in log.rounds:
        H, m = logged_round.signals["update_gram"], len(logged_round.arrived_ids)
        assert H.shape == (12, width)
        np.testing.assert_allclose(H[logged_round.arrived_ids, :m], H[logged_round.arrived_ids, :m].T, rtol=1e-9)
        assert (np.diag(H[logged_round.arrived_ids]) > 0).all()
        assert np.isnan(H[:, m:]).all()
        assert np.isnan(np.delete(H, logged_round.arrived_ids, axis=0)).all()


def test_derived_signals_are_read_from_the_log(tmp_path: Path) -> None:
    """With every product of two clients turned round, others are left out, and drawn less later."""
    folder = run(tmp_path, "selector=fedpns", "selector.keep=0.3")
    assert repeat(folder) == ReplayResult(6)
    log, changed_rounds = read_run_log(folder), []
    for logged_round in log.rounds:
        H, m = logged_round.signals["update_gram"].copy(), len(logged_round.arrived_ids)
        H[logged_round.arrived_ids, :m] *= 2 * np.eye(m) - 1
        changed_rounds.append(dataclasses.replace(logged_round, signals={**logged_round.signals, "update_gram": H}))
    log = dataclasses.replace(log, rounds=changed_rounds)
    assert replay_selector(log, *make_selectors(log, (), Path(CONFIGS))).first_difference is not None


def test_vectors_too_wide_in_some_rounds_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three numbers a row, where three or four clients arrive."""
    monkeypatch.setattr("fedcohort.round.client_columns.MAX_SIGNAL_COLUMNS", 3)
    folder = run(tmp_path, "selector=fedpns", "availability=bernoulli", "availability.p=0.3")
    log = read_run_log(folder)
    assert any(len(logged_round.arrived_ids) == 4 for logged_round in log.rounds)
    assert "update_gram" in log.signal_names
    message = r"reads update_gram, which .*: whole updates, values that the server"
    with pytest.raises(IncompatibleConfig, match=message):
        repeat(folder)


def test_signals_are_read_from_the_log(ucb: Path) -> None:
    """With the sign of every loss turned round, the clients that were best are worst."""
    log = read_run_log(ucb)
    changed_rounds = [
        dataclasses.replace(
            logged_round, signals={**logged_round.signals, "train_loss": -logged_round.signals["train_loss"]}
        )
        for logged_round in log.rounds
    ]
    log = dataclasses.replace(log, rounds=changed_rounds)
    same_selector, other_selector = make_selectors(log, (), Path(CONFIGS))
    assert replay_selector(log, same_selector, other_selector).first_difference is not None


def test_another_selector_stops_at_its_first_different_selection(ucb: Path) -> None:
    replayed = repeat(ucb, "selector=round_robin", "selector.tie=id")
    assert replayed == ReplayResult(
        6, 1, read_run_log(ucb).rounds[0].cohort.tolist(), [0, 1, 2, 3]
    )  # before any training


def test_other_options_of_the_selector_stop_at_a_later_round(flash: Path) -> None:
    """Round 1 selects all clients for any options; without exploration the posterior mean chooses in later rounds."""
    assert repeat(flash, "selector.gamma_scale=0").first_difference in range(2, 7)
    assert repeat(flash, "selector=flash") == repeat(flash) == ReplayResult(6)


def test_unspecified_options_are_those_of_the_run(tmp_path: Path) -> None:
    folder = run(tmp_path, "selector=round_robin", "selector.tie=id")
    assert repeat(folder, "selector.tie=id") == ReplayResult(6)
    assert repeat(folder, "selector=round_robin").first_difference == 1  # round_robin's default breaks ties at random


def test_signals_missing_in_the_log_are_named(ucb: Path, flash: Path) -> None:
    with pytest.raises(IncompatibleConfig, match=r"selector=flash reads duration, robust_loss, val_loss, which"):
        repeat(ucb, "selector=flash")
    with pytest.raises(IncompatibleConfig, match=r"queries robust_loss alpha=9\S* .*in round 1 "):
        repeat(flash, "selector.alpha=9")


def test_an_interrupted_run_is_replayed_up_to_its_last_round(flash: Path, tmp_path: Path) -> None:
    for name in ("info.json", "info.npz", "clients.parquet"):
        (tmp_path / name).write_bytes((flash / name).read_bytes())
    lines = (flash / "journal.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_text("".join(lines[:4]))
    assert repeat(tmp_path) == ReplayResult(3)
    (tmp_path / "journal.jsonl").write_text(lines[0])
    with pytest.raises(CheckpointError, match="no rounds to replay"):
        repeat(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "needs one run folder: fedcohort replay"),
        (("selector=flash",), "needs one run folder: fedcohort replay"),
        (("run=x", "cohort=3"), "cohort=3 is no option of the selector"),
        (("a", "b"), "needs one run folder: fedcohort replay"),
        (("run=nowhere",), "nowhere is not the folder of a run"),
        ((f"run={__file__}",), "test_replay.py is not the folder of a run"),
    ],
)
def test_wrong_arguments_are_reported(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(FedcohortError, match=message):
        main(arguments, Path(CONFIGS))


def test_an_option_out_of_range_is_reported(ucb: Path) -> None:
    with pytest.raises(OptionError, match=r"selector\.discount must be a number in \[0, 1\], got 7"):
        repeat(ucb, "selector.discount=7")


def test_the_command_prints_the_replay(
    ucb: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CONFIGS.parent)
    assert line.main(["replay", f"run={ucb}", "selector=round_robin", "selector.tie=id"]) == 1
    expected = "selector=round_robin differs from the run in round 1 of 6: the run chose ["
    assert capsys.readouterr().out.startswith(expected)


def test_an_unknown_selector_is_reported(ucb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [f"run={ucb}", "selector=ucb"]
    assert run_with_one_line_errors(lambda: main(arguments, Path(CONFIGS)), arguments, Path(CONFIGS)) == 2
    text = capsys.readouterr().err
    assert text.startswith("did you mean selector=ucb_cs? selector must be one of ")
    assert text.count("\n") == 1
