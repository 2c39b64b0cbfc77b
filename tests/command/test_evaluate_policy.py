"""`fedcohort evaluate-policy`: probabilities of logged cohorts by another selector, and refusals with their reason."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from config_options import CONFIGS
from fedcohort.command import line
from fedcohort.command.evaluate_policy import evaluate_policy, main, replay_cohorts
from fedcohort.errors import CheckpointError, IncompatibleConfig, OptionError
from fedcohort.maths.successive_draws import log_probability_of_set
from fedcohort.record import history
from fedcohort.record.run_log import read_run_log
from run_harness import run_training

LOGGED = (
    *("callback=default", "callback.figures=null", "callback.summary=null", "callback.progress=null"),
    *("split.limit=480", "eval.clients_every=0", "checkpoint.every=1000"),
)
PROPORTIONAL = ("selector=random", "selector.weights=proportional")
OTHER_OVERRIDES = ("partition=dirichlet", "heterogeneity=own", "cohort=2", "rounds=15")


def run(logs: Path, *overrides: str) -> Path:
    return run_training(logs, *LOGGED, *OTHER_OVERRIDES, *overrides).folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    logs = tmp_path_factory.mktemp("random")
    return [run(logs, f"seed={seed}") for seed in range(2)]


def test_cohorts_have_the_probabilities_of_both_selectors(runs: list[Path]) -> None:
    """Of 12 clients, random draws each pair with probability 1 / 66; the other selector draws by n_k."""
    log = read_run_log(runs[0])
    n_train = log.info.n_train.astype(float)
    for round, (run_distribution, other_distribution) in replay_cohorts(log, PROPORTIONAL, Path(CONFIGS)):
        chosen = round.cohort
        assert run_distribution.log_probability(chosen) == pytest.approx(-math.log(66))
        expected = log_probability_of_set(n_train[chosen], n_train.sum() - n_train[chosen].sum())
        assert other_distribution.log_probability(chosen) == pytest.approx(expected)


def test_the_command_prints_the_estimates(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*map(str, runs), *PROPORTIONAL], Path(CONFIGS)) == 0
    text = capsys.readouterr().out
    assert "over 30 rounds" in text
    assert text.count("| of the other selector |") == 3
    assert text.count("| difference of the two |") == 1
    assert "Only the cohort is replaced" in text


def test_a_repeated_run_does_not_count_twice(runs: list[Path], tmp_path: Path) -> None:
    """The command of the docs, typed twice, writes a second folder for each seed."""
    repeated = shutil.copytree(runs[0], tmp_path / "again")
    with pytest.raises(OptionError, match=f"{repeated} is the same run as {runs[0]}, with equal weights: name one"):
        evaluate_policy([*runs, repeated], PROPORTIONAL, Path(CONFIGS), "test/loss")


def test_the_run_s_mean_gain_is_that_of_its_metric(runs: list[Path]) -> None:
    result = evaluate_policy(runs[:1], PROPORTIONAL, Path(CONFIGS), metric="test/acc")
    assert result.n_rounds == 15
    assert result.logged_gain.mean == pytest.approx(_last_change(runs[0], "test/acc") / 15)
    losses = evaluate_policy(runs[:1], PROPORTIONAL, Path(CONFIGS), "test/loss")
    assert losses.logged_gain.mean == pytest.approx(-_last_change(runs[0], "test/loss") / 15)
    assert "too little overlap" in losses.reason  # 15 rounds are fewer than 20


def _last_change(folder: Path, metric: str) -> float:
    values = history.read_history(folder).metrics[metric].to_numpy()
    return float(values[-1] - values[0])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("selector=round_robin", "selector.tie=id"), "the other selector is deterministic"),
        (("selector=rpowd",), "draws candidates at random, of which only some train"),
        (("selector=e3cs",), "uses random numbers outside of its logged draws"),
    ],
)
def test_selectors_without_known_probabilities_are_refused(
    runs: list[Path], arguments: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*map(str, runs), *arguments], Path(CONFIGS)) == 1
    text = capsys.readouterr().out
    assert reason in text
    assert "No estimate" in text


def test_the_runs_of_a_deterministic_selector_are_refused(tmp_path: Path) -> None:
    folder = run(tmp_path, "selector=round_robin", "selector.tie=id")
    result = evaluate_policy([folder], ["selector=random"], Path(CONFIGS), "test/loss")
    assert result.excluded["the run's selector is deterministic"] == 15
    assert "no overlap" in result.reason


def test_wrong_input_is_refused(runs: list[Path], tmp_path: Path) -> None:
    configs, folder = Path(CONFIGS), str(runs[0])
    for arguments in ([], [folder], ["selector=random"], [folder, "selector=random", "rows=3"]):
        with pytest.raises(OptionError):
            main(arguments, configs)
    with pytest.raises(CheckpointError, match="has no metric test/f1"):
        main([folder, *PROPORTIONAL, "metric=test/f1"], configs)
    with pytest.raises(IncompatibleConfig, match="reads duration, loss_count"):
        main([folder, "selector=oort"], configs)
    with pytest.raises(CheckpointError, match="is not the folder of a run"):
        main([str(tmp_path), "selector=random"], configs)


def test_the_command_line_knows_the_command(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert line.main(["evaluate-policy", "--help"]) == 0
    assert "metric=test/loss" in capsys.readouterr().out


def test_each_round_has_its_draws_in_the_journal(runs: list[Path]) -> None:
    log = read_run_log(runs[0])
    for round in log.rounds:
        assert round.draw_log is not None
        (draw,) = round.draw_log.draws
        assert np.array_equal(np.sort(draw.clients), round.cohort)
        assert draw.pool_weights.tolist() == [1.0] * 12
