"""Reading the journal, also of folders that older versions wrote: figures and replays find the same facts."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from config_options import CONFIGS
from fedcohort.command.replay import ReplayResult, make_selectors, replay_selector
from fedcohort.record import history, metadata, run_log
from fedcohort.record.history import JournalLine, read_history, wall_s
from fedcohort.report.figure import one_round, selection, style
from fedcohort.report.run_figures import redraw_run
from record.old_run_folder import convert_to_old_format
from run_harness import run_training

OVERRIDES = ("callback=default", "callback.figures=null", "callback.summary=null", "callback.progress=null")
BERNOULLI_AVAILABILITY = ("availability=bernoulli", "availability.p=0.6", "eval.clients_every=0")
ALL_CLIENTS = np.arange(12)


@pytest.fixture(scope="module", params=["flash", "random"])  # flash scores all clients, random no client
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One run's folder as it is written, and in the old form."""
    root = tmp_path_factory.mktemp("old")
    new_run = run_training(
        root, *OVERRIDES, f"selector={request.param}", "rounds=5", "deadline=fixed", *BERNOULLI_AVAILABILITY
    )
    old = root / "runs" / f"{new_run.folder.name}-2"
    shutil.copytree(new_run.folder, old)
    convert_to_old_format(old)
    return new_run.folder, old


def test_the_older_format_is_different(folders: tuple[Path, Path]) -> None:
    new_folder, old_folder = folders
    assert "present" not in json.loads((old_folder / "journal.jsonl").read_text().splitlines()[-1])
    assert read_history(old_folder).available(1) is None
    assert read_history(new_folder).available(1) is not None
    assert len(read_history(old_folder).clients(start=1)) == 5 * 12
    if "random" in new_folder.name:
        assert len(read_history(new_folder).clients(start=1)) < 5 * 12
    assert not (old_folder / metadata.ARRAYS_FILE).exists()


def test_availability_is_read_from_the_table(folders: tuple[Path, Path]) -> None:
    new_outcomes, old_outcomes = (selection.load_outcomes(read_history(folder), ALL_CLIENTS) for folder in folders)
    assert bool(np.any(old_outcomes == one_round.UNAVAILABLE))
    np.testing.assert_array_equal(old_outcomes, new_outcomes)


@pytest.mark.parametrize("step", [1, 5])
def test_a_round_is_explained_equally_from_both_formats(folders: tuple[Path, Path], step: int) -> None:
    new_round, old_round = (one_round.load_scored_round(read_history(folder), step) for folder in folders)
    np.testing.assert_array_equal(old_round.outcomes, new_round.outcomes)
    np.testing.assert_array_equal(old_round.columns["score"], new_round.columns["score"])


def test_folders_of_older_versions_are_replayed(folders: tuple[Path, Path]) -> None:
    logs = [run_log.read_run_log(folder) for folder in folders]
    for first_round, second_round in zip(*(log.rounds for log in logs), strict=True):
        assert first_round.available_ids.tolist() == second_round.available_ids.tolist()
    assert [replay_selector(log, *make_selectors(log, (), Path(CONFIGS))) for log in logs] == [ReplayResult(5)] * 2


def test_figures_of_older_folders_are_drawn(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "save_figure", lambda figure, path, formats: [path])  # drawn, but not rendered
    assert {path.name for path in redraw_run(folders[1])} >= {"selection.png", "partition.png"}


def test_wall_time_excludes_the_gaps_between_processes() -> None:
    """Two processes: 1 to 4 s, and 100 s to 107 s; a third did not commit a step."""
    assert wall_s([1_000, 100_000, 500_000], [2_000, 4_000, 105_000, 107_000]) == 3 + 7


def test_offsets_point_to_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert history.read_journal_lines(path) == ([], 0)
    line = dataclasses.asdict(JournalLine(0, 1, {"a": 1.0}, {"t": (0.0, 1.0)}, "f", [], []))
    del line["digest"]
    path.write_text(json.dumps(line) + "\n")
    first, offset = history.read_journal_lines(path)
    with path.open("a") as file:
        file.write(json.dumps(line | {"step": 1}) + "\n" + '{"step"')
    second, end = history.read_journal_lines(path, offset, first[-1].digest)
    assert [entry.step for entry in first + second] == [0, 1]
    assert history.read_journal_lines(path, end) == ([], end)
