"""The demo: a user's selector compared with random selection and the best method, and commands that can be pasted."""

import shlex
from pathlib import Path

import numpy as np
import pytest

from fedcohort.command import demo
from fedcohort.errors import OptionError
from run_harness import collecting_overrides, compose_overrides
from whole import claims

SETTING = list(demo.SETTING_OPTIONS)
STUDY, SETTING_NAME = "regimes_digits", "bimodal70"
SMALL = ("clients=12", "cohort=4", "rounds=6", "model=logreg", "logger=none", "callback.figures=null")


def test_the_demo_prints_a_few_lines_and_runnable_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "shell_command", lambda name: f"here/{name}")
    monkeypatch.setattr(demo, "format_fedcohort_command", lambda name: f"here/fedcohort {name}")
    assert demo.main(SMALL) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert len(lines) + len(captured.err.splitlines()) <= 60
    assert sum(line.startswith("run ") and "here/python train.py selector=" in line for line in lines) == 3
    *_, page, _, sweep, see = lines
    assert page == f"Report: {tmp_path / 'logs' / 'demo' / 'report.html'}"
    assert "<h2>Results</h2>" in (tmp_path / "logs" / "demo" / "report.html").read_text()
    assert "points" in captured.out
    assert "×)" in captured.out, "costs are multiples of those of random selection"
    arguments = f"selector=flash,random,flash_answered {' '.join((*SETTING, *SMALL))} seed=0,1,2"
    assert sweep.endswith(f": here/python train.py -m {arguments}")
    assert shlex.split(see)[-2:] == ["ui", "sweep=null"]
    assert demo.SETTING_TEXT not in captured.out, "other options than the setting's may change it"


@pytest.mark.parametrize(
    ("arguments", "first", "expected_others"),
    [
        ([], ["selector=flash"], []),
        (
            ["selector=oort", "selector.penalty=1", "agg=scaffold"],
            ["selector=oort", "selector.penalty=1"],
            ["agg=scaffold"],
        ),
        (["agg=scaffold"], ["selector=flash"], ["agg=scaffold"]),
    ],
    ids=["nothing typed", "another selector", "no selector"],
)
def test_the_runs_differ_only_in_the_selector(
    arguments: list[str], first: list[str], expected_others: list[str]
) -> None:
    flash, *other_runs = demo.list_demo_runs(arguments).values()
    assert flash == [*first, *SETTING, *expected_others]
    assert other_runs == [[f"selector={name}", *SETTING, *expected_others] for name in ("random", "flash_answered")]


def test_a_baseline_is_run_once_and_the_setting_can_be_changed() -> None:
    assert list(demo.list_demo_runs(["selector=random", "heterogeneity=iid"]).values()) == [
        ["selector=random", "heterogeneity=iid"],
        ["selector=flash_answered", "heterogeneity=iid"],
    ]


@pytest.mark.parametrize("argument", ["-m", "paths.logs=elsewhere"])
def test_the_demo_rejects_another_folder_for_its_logs(argument: str) -> None:
    with pytest.raises(OptionError, match=f"leave out '{argument}': fedcohort demo makes single runs"):
        demo.list_demo_runs([argument])


def test_the_demo_reports_the_results_of_the_study(tmp_path: Path) -> None:
    """The demo has a setting of the study, its best method there, and the config's description of the noise."""
    assert set(demo.SETTING_OPTIONS) == set(claims.read_study(STUDY)["settings"][SETTING_NAME]["overrides"])
    methods = [name for name in claims.list_methods(STUDY) if name in claims.read_runs(STUDY, SETTING_NAME)]
    differences = [list(claims.paired_differences(STUDY, SETTING_NAME, name).values()) for name in methods]
    best = int(np.argmax([claims.average(values) for values in differences]))
    assert methods[best] == demo.BEST_SELECTOR
    assert claims.adjust_by_holm([claims.t_test_p(values) for values in differences])[best] < claims.ALPHA
    composed = compose_overrides(*collecting_overrides(tmp_path, *demo.SETTING_OPTIONS, small=False))
    noise, clients = composed.config["label_noise"], composed.config["clients"]
    noisy_clients = f"{round(noise['share'] * clients)} of {clients} clients"
    assert f"{noisy_clients} have {100 * noise['rate']:.0f} % wrong labels" == demo.SETTING_TEXT
