"""The choices and options of a config that differ from the defaults in configs/, and from those of the nearest run."""

import shutil
from pathlib import Path

import pytest

from fedcohort.startup import run_info
from fedcohort.startup.run_info import list_changed
from run_harness import collecting_overrides, compose_words, go

WORDS = ("agg=scaffold", "client_store.limit_gb=0", "callback=default", "callback.figures=null", "rounds=5")
STOPPING = "lightning.pytorch.callbacks.EarlyStopping"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ((), {}),
        (("seed=3", "callback=none", "logger=none"), {"seed": "3"}),  # who watches is no part of the experiment
        (("client.lr=0.2", "cohort=10"), {"client.lr": "0.2"}),  # cohort is 10 anyway
        (("clients=20",), {"clients": "20"}),  # the yaml computes it
        (("selector=flash", "selector.delta=0.1"), {"selector": "flash", "selector.delta": "0.1"}),
        (("heterogeneity=iid",), {"heterogeneity": "iid"}),  # and not the words that it stands for
        (("partition=iid",), {"partition": "iid"}),  # the preset is none any more, its other words are as before
        (("agg=fedprox",), {"agg": "fedprox", "regulariser": "prox", "deadline.partial_work": "true"}),
        (
            ("experiment=regret",),
            {"experiment": "regret", "clients": "20", "cohort": "4", "rounds": "20", "client.epochs": "1"},
        ),
        (("dataset=mnist", "dataset.columns={image: a}"), {"dataset": "mnist", "dataset.columns.image": "a"}),
        (("objective=propfair",), {"objective": "propfair"}),
        (
            ("objective=propfair", "objective@objective.base=gce"),
            {"objective": "propfair", "objective.base": "gce"},
        ),
        (("data_seed=null", "until.acc=0.5"), {"until.acc": "0.5"}),
        (  # it may end the run, and an observer may not
            (
                f"+callback.halt._target_={STOPPING}",
                "+callback.halt.monitor=server_val/loss",
                "callback.summary.full=true",
            ),
            {"callback.halt._target_": STOPPING, "callback.halt.monitor": "server_val/loss"},
        ),
    ],
)
def test_differences_from_the_defaults_are_listed(typed: tuple[str, ...], expected: dict[str, str]) -> None:
    assert list_changed(compose_words(*typed)) == expected


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the logs of a run of one round."""
    logs = tmp_path_factory.mktemp("logs")
    go(logs, *WORDS, "rounds=1")
    return logs


def home(logs: Path) -> Path:
    (found,) = (logs / "runs").iterdir()
    return found


@pytest.mark.parametrize(
    ("words", "differs"),
    [
        (("client.lr=0.2", "seed=1"), "differs in client.lr=0.1 (here 0.2), seed=0 (here 1)"),
        (("selector=ucb_cs", "seed=1"), "differs in seed=0 (here 1), selector=random (here ucb_cs)"),
        ((), "has the same options, but more rounds, other callbacks or an older format"),
    ],
)
def test_the_nearest_run_is_described_by_its_differences(logs: Path, words: tuple[str, ...], differs: str) -> None:
    line = run_info.describe_nearest_run(
        logs / "runs", logs / "runs" / "new", compose_words(*collecting_overrides(logs, *WORDS, *words)).config
    )
    assert line.startswith(f"the nearest run, {home(logs)}, {differs}")


def test_unreadable_runs_are_skipped(logs: Path, tmp_path: Path) -> None:
    config = compose_words(*collecting_overrides(logs, *WORDS, "seed=3")).config
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "config.yaml").write_text("a: [1, 2\n")
    assert run_info.describe_nearest_run(tmp_path, tmp_path / "b", config) == ""
    shutil.copytree(home(logs), tmp_path / "c")
    assert "differs in seed=0 (here 3)" in run_info.describe_nearest_run(tmp_path, tmp_path / "b", config)


def test_a_resume_without_a_run_describes_the_nearest_one(
    logs: Path, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    where = home(Path(shutil.copytree(logs, tmp_path / "logs")))
    go(tmp_path / "logs", *WORDS, "rounds=1", "client.lr=0.2", "resume=true")
    expected = f"nothing to resume for this config and seed; starting a new run (the nearest run, {where}, differs in "
    assert f"{expected}client.lr=0.1 (here 0.2))" in [entry.getMessage() for entry in said.records]
