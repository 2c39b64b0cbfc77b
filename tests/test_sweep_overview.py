"""What is said after a sweep's last job."""
# ruff: noqa: F811

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Metric, Param, RunTag

from callback.databases import Logs, logs, said  # noqa: F401
from callback.made_up import info
from compare_toy import ACC
from fedcohort import sweep as module
from fedcohort.assemble import Composed
from fedcohort.callback import card
from fedcohort.callback.tracking import identity, server
from fedcohort.compare.__main__ import compare, parsed
from fedcohort.sweep import Sweep

GROUPS = ("selector", "agg", "heterogeneity", "client")


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "command", lambda name: name)


def made(*words: str, **logger: Any) -> Composed:
    """What Hydra would compose, of the words and the logger alone."""
    config: dict[str, Any] = {"logger": {"tracking_uri": None, "experiment": "fedcohort", "logs": "logs", **logger}}
    choices = {}
    for word in words:
        key, _, value = word.lstrip("+").partition("=")
        if key in GROUPS:
            choices[key] = value
            continue
        *path, last = key.split(".")
        node = config
        for part in path:
            node = node.setdefault(part, {})
        node[last] = float(value) if "." in value else int(value)
    return Composed(config, choices, words)


def swept(*jobs: Composed, id: str = "s") -> Sweep:
    found = Sweep(id)
    for job in jobs:
        found.finished(job)
    return found


def before(folder: Path, tags: dict[str, str], *, tracked: bool = True) -> Path:
    """The folder of a run that had finished before this sweep began."""
    folder.mkdir(parents=True)
    card.save(info(folder, tags=tags))
    if tracked:
        identity.register(folder, server.place(None, "fedcohort", folder.parent))
    return folder


COMPARED: list[tuple[Sequence[tuple[str, ...]], str]] = [
    ([("selector=random", "seed=0"), ("selector=flash", "seed=1")], " rows=selector baseline=random"),
    ([("selector=ucb_cs",), ("selector=flash",)], " rows=selector"),
    ([("agg=fedavg", "selector=flash"), ("agg=scaffold", "selector=flash")], " rows=agg baseline=fedavg"),
    ([("agg=qffl", "selector=flash"), ("agg=fedavg", "selector=oort")], " rows=selector cols=agg baseline=fedavg"),
    ([("+client.lr=0.10",), ("+client.lr=0.2",)], " rows=client.lr"),
    ([("rounds=3", "selector=random"), ("rounds=20", "selector=flash")], " rows=selector cols=rounds baseline=random"),
    ([("seed=0",), ("seed=1",)], ""),
    ([("selector=flash",)], ""),
    ([("paths.x=1", "logger.every_s=1"), ("paths.x=2", "logger.every_s=2")], ""),
]


@pytest.mark.parametrize(("jobs", "how"), COMPARED)
def test_what_was_swept_is_what_is_compared(jobs: Sequence[tuple[str, ...]], how: str) -> None:
    said = swept(*(made(*words) for words in jobs)).overview()
    number = f"{len(jobs)} job{'s' if len(jobs) > 1 else ''}"
    assert said == f"sweep s: {number} done. Compare them: python -m fedcohort.compare sweep=s{how}"


def test_of_a_third_one_the_command_takes_one_value(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter is in MLflow's language, and a shell hands it over as it is."""
    monkeypatch.chdir(logs.path.parent)
    client = logs.client()
    experiment = client.create_experiment("fedcohort")
    jobs = [
        (f"selector={a}", f"agg={b}", f"client.lr={c}", f"rounds={d}")
        for a, b, c, d in [("random", "fedavg", 0.1, 3), ("flash", "qffl", 0.1, 3), ("flash", "fedavg", 0.2, 20)]
    ]
    for words in jobs:
        pairs = [word.split("=") for word in words] + [["seed", "0"]]
        tags = [RunTag("sweep_id", "s"), RunTag("status", "finished"), RunTag("rounds", dict(pairs)["rounds"])]
        run = client.create_run(experiment).info.run_id
        client.log_batch(run, [Metric(ACC, 0.5, 0, 3)], [Param(key, value) for key, value in pairs], tags)
    said, _, line = swept(*(made(*words) for words in jobs)).overview().partition(": python ")
    assert said == "sweep s: 3 jobs done. Compare those of client.lr=0.1, rounds=3"
    words = shlex.split(line)[2:]
    assert words[:4] == ["sweep=s", "rows=selector", "cols=agg", "baseline=random"]
    text, _ = compare(parsed([*words, "curves=false"]))
    assert "| flash | – | 50.000 (n=1) |" in text
    assert "| random | 50.000 (n=1) | – |" in text


def test_another_place_is_named() -> None:
    jobs = [made("seed=0", logs="/a b/logs", experiment="mine"), made("seed=1", logs="/a b/logs", experiment="mine")]
    where = "'tracking_uri=sqlite:////a b/logs/mlflow.db' experiment=mine"
    assert swept(*jobs).overview().endswith(f"fedcohort.compare sweep=s {where}")
    served = made("seed=0", tracking_uri="http://127.0.0.1:9")
    assert swept(served).overview().endswith("fedcohort.compare sweep=s tracking_uri=http://127.0.0.1:9")


def test_without_tracking_no_comparison_is_promised() -> None:
    plain = Composed({"logger": {}}, {"selector": "flash"}, ("selector=flash",))
    assert swept(plain).overview() == "sweep s: 1 job done."


def test_skipped_jobs_are_found_by_the_sweep_that_they_were_run_in(tmp_path: Path) -> None:
    sweep = Sweep("new")
    for word in ("random", "flash"):
        sweep.skip(made(f"selector={word}"), before(tmp_path / word, {"sweep_id": "old"}))
    told = "sweep new: 2 jobs skipped (finished before)."
    how = "python -m fedcohort.compare"
    assert sweep.overview() == f"{told} Compare them: {how} sweep=old rows=selector baseline=random"
    sweep.finished(made("selector=oort"))
    sweep.failed.append("selector=foo: why")
    assert sweep.overview() == (
        "sweep new: 1 job done, 2 skipped (finished before), 1 failed. Skipped runs keep the sweep that they were run "
        f"in; compare them with all other runs beside them: {how} rows=selector baseline=random"
    )


def test_skipped_jobs_that_mlflow_does_not_know(tmp_path: Path) -> None:
    sweep = Sweep("new")
    sweep.skip(made("seed=0"), before(tmp_path / "untracked", {"sweep_id": "old"}, tracked=False))
    (tmp_path / "without a journal").mkdir()
    sweep.skip(made("seed=1"), tmp_path / "without a journal")
    assert sweep.overview() == "sweep new: 2 jobs skipped (finished before)."
    single = Sweep("new")
    single.skip(made("seed=0"), before(tmp_path / "single", {}))
    assert single.overview().endswith("with all other runs beside them: python -m fedcohort.compare")


def test_only_a_sweep_has_an_overview(said: pytest.LogCaptureFixture) -> None:
    swept(made("seed=0"), id="").say()
    Sweep("no job ran").say()
    assert said.messages == []
    failing = Sweep("s", failed=["cohort=40: it exceeds clients=12"])
    failing.say()
    assert said.messages == ["failed: cohort=40: it exceeds clients=12", "sweep s: 1 job failed."]
