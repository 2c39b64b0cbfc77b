"""Stored results are compared with the current code: a rename changes nothing; changed behaviour is found and rerun."""

from pathlib import Path

import numpy as np
import pytest

from config_options import CONFIGS
from fedcohort.bandit import discounted
from fedcohort.record import provenance
from fedcohort.study import report
from fedcohort.study.compare_code import compare_with_current_code
from fedcohort.study.definition import list_conditions
from fedcohort.study.progress import describe_runs
from fedcohort.study.results import Results
from fedcohort.study.results import load_results as load_results
from fedcohort.study.runner import StudyRunner
from fedcohort.types import Values
from study.small_study import SMALL_STUDY, write_study

SETTINGS = {"equal": {"overrides": ["heterogeneity=iid"]}}


class StudyFolder:
    """A study of random and ucb_cs on two seeds, and what its commands say."""

    def __init__(self, folder: Path) -> None:
        self.logs, self.folder, self.lines = folder / "logs", folder / "tiny", list[str]()
        self.common = [word for word in SMALL_STUDY["common"] if not word.startswith("rounds")] + ["rounds=6"]
        self.define(self.common)

    def define(self, common: list[str]) -> None:
        self.study = write_study(self.folder, common=common, settings=SETTINGS, methods=["ucb_cs"], seeds=[0, 1])

    def work(self, repeat: str = "false") -> StudyRunner:
        self.lines.clear()
        return StudyRunner(self.study, load_results(self.study), CONFIGS, self.logs, False, self.lines.append, repeat)

    def run(self, repeat: str = "false") -> Results:
        self.work(repeat).run_conditions(list_conditions(self.study), self.study.seeds)
        return load_results(self.study)

    def compare(self) -> dict[str, str]:
        """Check the rows, and return what differs by selector; both seeds have the same."""
        compare_with_current_code(self.work(), list_conditions(self.study), self.study.seeds)
        return {key[1]: row["differs"] for key, row in load_results(self.study).rows.items()}

    def status(self) -> str:
        results = load_results(self.study)
        progress = self.work().find_progress(list_conditions(self.study), self.study.seeds)
        return describe_runs(self.study, progress, results)


def avoid(sums: discounted.DiscountedSums, sigma: float) -> Values:
    """Compute the width of UCB-CS with an exploration constant of -100, as one of 0 chooses the same clients here."""
    width = original(sums, sigma)
    return np.where(np.isinf(width), width, -100.0 * width)


def rename(history: discounted.DiscountedSums, sigma: float) -> Values:
    """Compute the width of UCB-CS under other names."""
    return original(history, sigma)


original = discounted.confidence_widths


def test_changed_behaviour_is_detected_marked_and_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "current_commit", lambda: ("old", False))
    study_folder = StudyFolder(tmp_path)
    first = study_folder.run()
    assert all(row["behaviour"] and row["compared"] == "old" for row in first.rows.values())
    assert study_folder.compare() == {"random": "", "ucb_cs": ""}
    assert study_folder.lines == ["0 reference runs of 8 rounds to do"]

    # other names, another order of options, and rows of older code that have no fingerprint
    monkeypatch.setattr(provenance, "current_commit", lambda: ("renamed0001", False))
    monkeypatch.setattr(discounted, "confidence_widths", rename)
    study_folder.define(study_folder.common[::-1])
    for row in first.rows.values():
        row["behaviour"] = ""
    first.save_files()
    assert "code     4 not compared with commit renamed000: fedcohort study check tiny" in study_folder.status()
    assert study_folder.compare() == {"random": "", "ucb_cs": ""}
    assert study_folder.lines[1] == "2 reference runs of 8 rounds to do"  # not one for each seed
    assert study_folder.lines[2] == "[1/2] equal random seed 0: the same"
    assert "differs" not in study_folder.status()

    monkeypatch.setattr(provenance, "current_commit", lambda: ("planted00012", False))
    monkeypatch.setattr(discounted, "confidence_widths", avoid)
    changes = study_folder.compare()
    assert changes["random"] == ""
    assert "from round" in changes["ucb_cs"]
    assert "differs  2: computed by code that behaves differently" in study_folder.status()
    assert "`fedcohort study run tiny again=changed` runs them again\n  ucb_cs in equal" in study_folder.status()
    report.write_study_report(study_folder.study, load_results(study_folder.study))
    page = (study_folder.folder / "README.md").read_text()
    assert "(n=2, 2§)" in page
    assert "§ marks numbers of 2 runs whose code behaves differently from commit planted000" in page

    repeat = study_folder.run("changed")
    assert "2 of 4 runs are done, 2 to do" in study_folder.lines
    assert {key[1]: row["commit"] for key, row in repeat.rows.items()} == {"random": "old", "ucb_cs": "planted00012"}
    assert study_folder.compare() == {"random": "", "ucb_cs": ""}
    assert "differs" not in study_folder.status()
