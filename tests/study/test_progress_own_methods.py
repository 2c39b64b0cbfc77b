"""A user's method in a study: its results are not written into the study's folder, and its rank is printed."""

from pathlib import Path

import pytest

from config_options import CONFIGS
from fedcohort.command import study as command
from fedcohort.study import progress, results
from fedcohort.study.result_files import RESULTS_FILE
from study.small_study import make_results, write_study

SETTINGS = {"equal": {"overrides": ["heterogeneity=iid"]}}


def test_a_users_own_results_are_stored_separately_and_merged_for_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = write_study(tmp_path / "studies" / "tiny", settings=SETTINGS, seeds=[0])
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    assert command.main(["run", "tiny"]) == 0
    assert command.main(["report", "tiny"]) == 0
    stored_bytes = {path: path.read_bytes() for path in tiny.folder.rglob("*.*")}
    written_ns = (tiny.folder / RESULTS_FILE).stat().st_mtime_ns
    assert command.main(["run", "tiny", "methods=ucb_cs"]) == 0
    assert (tiny.folder / RESULTS_FILE).stat().st_mtime_ns == written_ns, "an older version's file would change"
    assert "ucb_cs: mean rank " in capsys.readouterr().out
    assert command.main(["report", "tiny"]) == 0
    assert {path: path.read_bytes() for path in tiny.folder.rglob("*.*")} == stored_bytes
    logs = tmp_path / "logs" / "studies" / "tiny"
    assert "| ucb_cs |" in (logs / "README.md").read_text()
    assert {key[1] for key in results.load_results(tiny).rows} == {"random", "round_robin"}
    merged = results.load_results(tiny, logs)
    assert {key[1] for key in merged.user_run_keys} == {"ucb_cs"}
    assert {key[1] for key in merged.rows} == {"random", "round_robin", "ucb_cs"}


def test_the_rank_is_among_methods_with_the_same_seeds(tmp_path: Path) -> None:
    """In `equal` the method `mine` is second of three, and in `noisy` first. `worse` lacks a seed and is not ranked."""
    study = write_study(tmp_path, methods=["round_robin", "powd"], oracles=["oracle_clean"])
    late_means = {
        "equal": {"random": [0.5, 0.5], "round_robin": [0.8, 0.9], "mine": [0.7, 0.8], "powd": [0.1, 0.1]},
        "noisy": {"random": [0.5, 0.5], "round_robin": [0.5, 0.6], "mine": [0.7, 0.8], "powd": [0.9]},
    }
    late_means["equal"]["oracle_clean"] = late_means["noisy"]["oracle_clean"] = [0.99, 0.99]
    lines = progress.describe_user_method_ranks(study, make_results(study, late_means))
    assert lines == ["mine: mean rank 1.5 of 3 methods by test/acc, 2 settings, 2 seeds"]
