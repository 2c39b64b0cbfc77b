"""`fedcohort study`: its arguments and its messages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from case_loop import for_all
from config_options import CONFIGS
from fedcohort.command import study
from fedcohort.errors import OptionError
from fedcohort.record import manifest
from fedcohort.study import result_files, results, session
from study.small_study import write_study

SETTINGS = {"equal": {"overrides": ["heterogeneity=iid"]}}


@for_all(
    "overrides, message",
    [
        ([], "type fedcohort study VERB NAME, where VERB is one of run, status, check, tune, report"),
        (["walk", "tiny"], "type fedcohort study VERB NAME"),
        (["run", "seeds=1"], "type fedcohort study VERB NAME"),
        (["run", "tiny", "fast"], "can't read 'fast': type name=value"),
        (["run", "tiny", "seed=1"], "there is no option 'seed'; there are .*; did you mean seeds"),
        (["run", "tiny", "n_jobs=0"], r"n_jobs must be an integer in \[1, inf\), got 0"),
        (["report", "tiny", "settings=equal"], "fedcohort study report takes no options, got settings=equal"),
        (
            ["run", "tiny", "cells=a", "selectors=b"],
            "cells is called settings now, selectors is called methods now: use",
        ),
        (["status", "tiny", "n_jobs=2"], "fedcohort study status takes seeds, settings, methods, got n_jobs=2"),
        (["run", "tiny", "again=yes"], "again must be one of true, false, changed, got 'yes'"),
        (["run", "tiny", "keep_runs=yes"], "keep_runs must be one of true, false, got 'yes'"),
    ],
)
def test_wrong_arguments_are_reported(overrides: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        study.parse_arguments(overrides)


def test_a_study_is_run_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_study(tmp_path / "studies" / "tiny", settings=SETTINGS, seeds=[0, 1])
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    assert study.main(["status", "tiny"]) == 0
    assert "done     0 of 4 runs\nmissing  4\n" in capsys.readouterr().out
    assert study.main(["run", "tiny", "seeds=0", "settings=equal", "methods=round_robin"]) == 0
    output = capsys.readouterr().out
    assert "0 of 2 runs are done, 2 to do\n[1/2] equal random seed 0: 0." in output
    assert study.main(["status", "tiny"]) == 0
    status = capsys.readouterr().out
    assert "done     2 of 4 runs\nmissing  2, about " in status
    assert "in one process\n  random, round_robin\n" in status
    assert study.main(["report", "tiny"]) == 0
    paths = [path.split("/", 1)[1] for path in capsys.readouterr().out.split()]
    assert (paths[-1], "tiny/tables/setting_equal.tex" in paths) == ("README.md", True)
    with pytest.raises(OptionError, match=r"seeds must be an integer in \[0, inf\), got"):
        study.main(["status", "tiny", "seeds=\u00b2"])


def test_results_of_another_process_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results were read before the lock was taken: those that its holder wrote until then were written over."""
    tiny = write_study(tmp_path / "studies" / "tiny", settings=SETTINGS, seeds=[0, 1])
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    lock_study = session.lock_study

    @contextmanager
    def lock_after_other_process(logs: Path, print_line: Callable[[str], None]) -> Iterator[None]:
        monkeypatch.setattr(session, "lock_study", lock_study)
        assert study.main(["run", "tiny", "seeds=0"]) == 0
        with lock_study(logs, print_line):
            yield

    monkeypatch.setattr(session, "lock_study", lock_after_other_process)
    assert study.main(["run", "tiny", "seeds=1"]) == 0
    assert {key[2] for key in results.load_results(tiny).rows} == {0, 1}


def test_a_page_leaves_out_runs_of_another_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of removed options are not averaged with others; rows that cannot be composed any more stay."""
    tiny = write_study(tmp_path / "studies" / "tiny", settings=SETTINGS, seeds=[0])
    (tmp_path / "studies" / "board").mkdir()
    (tmp_path / "studies" / "board" / "study.yaml").write_text("title: t\nquestion: q\nof: {tiny: digits}\n")
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    assert study.main(["run", "tiny", "methods=round_robin,ucb_cs"]) == 0
    user_folder = tmp_path / "logs" / "studies" / "tiny"
    stored = results.load_results(tiny, user_folder)
    stored.user_run_keys.clear()  # older versions wrote these rows into the study's folder
    outdated_row = {**stored.rows["equal", "ucb_cs", 0], "selector": "gone", "stamp": "of its word"}
    stored.store_run(outdated_row, stored.curves["equal", "ucb_cs", 0])
    for row in stored.rows.values():
        row["stamp"] = "of other configs"
    stored.save_files()
    for name in (result_files.RESULTS_FILE, result_files.CURVES_FILE, manifest.MANIFEST_FILE):
        (user_folder / name).unlink()
    page, board = (tmp_path / "studies" / name / "README.md" for name in ("tiny", "board"))
    capsys.readouterr()
    assert study.main(["report", "tiny"]) == 0
    assert "composing the affected runs" in capsys.readouterr().out
    assert "left out" not in page.read_text()  # the configs that they have are the same

    for name in ("round_robin", "ucb_cs"):
        stored.rows["equal", name, 0]["config_hash"] = "another"
    stored.save_files()
    results_bytes = (tiny.folder / result_files.RESULTS_FILE).read_bytes()
    line = (
        "2 runs left out, since the configuration has changed or is rejected now: round_robin, ucb_cs in all requested "
        "settings; `fedcohort study run tiny` runs them again (own methods: add `methods=ucb_cs`)\n"
    )
    for name, expected, text in (("tiny", f"- {line}", page), ("board", f"- tiny: {line}", board)):
        assert study.main(["report", name]) == 0
        assert expected in text.read_text()
    assert "- all of 1 seed in all requested settings: round_robin\n" in page.read_text()
    assert "| gone |" in page.read_text()
    assert "| ucb_cs |" not in page.read_text()
    assert "- 2 runs, 0.0 hours" in page.read_text()
    assert (tiny.folder / result_files.RESULTS_FILE).read_bytes() == results_bytes  # a page takes nothing away


def test_a_leaderboard_is_reported_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_study(tmp_path / "studies" / "tiny", settings=SETTINGS)
    (tmp_path / "studies" / "board").mkdir()
    (tmp_path / "studies" / "board" / "study.yaml").write_text("title: t\nquestion: q\nof: {tiny: digits}\n")
    monkeypatch.chdir(tmp_path)
    assert study.main(["report", "board"]) == 0
    assert "studies/board/report.html" in capsys.readouterr().out
    with pytest.raises(
        OptionError, match=r"board is a leaderboard without runs\. Type fedcohort study run with one of tiny"
    ):
        study.main(["run", "board"])


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("settings=", "settings must be one name or more, as settings=a,b, or null for all, got ''"),
        ("methods=[]", r"methods must be one name or more, as methods=a,b, or null for all, got '\[\]'"),
        ("methods=bound:nobody", "methods must be some of random, round_robin, bound:clean, .*got 'bound:nobody'"),
    ],
)
def test_unknown_names_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, message: str) -> None:
    """`0 of 0 runs` it was, or everything but what was typed."""
    write_study(tmp_path / "studies" / "tiny")
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=message):
        study.main(["status", "tiny", word])
    assert study.main(["status", "tiny", "methods=bound:clean"]) == 0


def test_seeds_used_for_tuning_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = {"flash": {"selector.lam": [1.0, 2.0]}}
    write_study(tmp_path / "studies" / "tiny", tune={"trials": 1, "seeds": [7], "settings": ["equal"], "space": space})
    write_study(tmp_path / "studies" / "bare")
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match="seeds must be seeds that the tuning did not use, unlike 7, got '6,7'"):
        study.main(["status", "tiny", "seeds=6,7"])
    with pytest.raises(OptionError, match="methods must be one of flash, got 'random'"):
        study.main(["tune", "tiny", "methods=random"])
    with pytest.raises(OptionError, match=r"study\.yaml has no option `tune`"):
        study.main(["tune", "bare"])
