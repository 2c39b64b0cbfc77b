"""The demo: a selector of one's own beside random and the best, and last lines that can be pasted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fedcohort.command import demo
from fedcohort.errors import OptionError
from fedcohort.startup.command_line import in_one_line
from fedcohort.study.definition_file import load as load_study
from fedcohort.study.judge import judge
from fedcohort.study.results import load as load_results
from run_harness import collect_words, compose_words
from yaml_words import ROOT

SETTING = list(demo.SETTING)
STUDY = Path(__file__).resolve().parents[2] / "studies" / "regimes_digits"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The words of the runs, none of which is trained."""
    found: list[list[str]] = []

    def train(words: Sequence[str]) -> dict[str, Any]:
        found.append(list(words))
        return {"final": dict.fromkeys((name for _, name, *_ in demo.ROWS), 0.5)}

    monkeypatch.setattr(demo, "train", train)
    monkeypatch.setattr(demo, "command", lambda name: f"here/{name}")
    monkeypatch.setattr(demo, "fedcohort", lambda name: f"here/fedcohort {name}")
    return found


def test_it_ends_with_commands_that_run_here(ran: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    demo.main()
    assert ran == [[f"selector={name}", *SETTING] for name in ("flash", "random", "flash_answered")]
    *_, sweep, see = capsys.readouterr().out.splitlines()
    words = "selector=flash,random,flash_answered heterogeneity=noise_bimodal label_noise.share=0.7 seed=0,1,2"
    assert sweep.endswith(f": here/python train.py -m {words}")
    assert see.endswith(": here/fedcohort ui sweep=null")


@pytest.mark.parametrize(
    ("words", "first", "others"),
    [
        (
            ["selector=oort", "selector.alpha=1", "agg=scaffold"],
            ["selector=oort", "selector.alpha=1"],
            ["agg=scaffold"],
        ),
        (["agg=scaffold"], ["selector=flash"], ["agg=scaffold"]),
    ],
    ids=["another selector", "no selector"],
)
def test_the_runs_differ_in_the_selector_alone(
    ran: list[list[str]], words: list[str], first: list[str], others: list[str]
) -> None:
    demo.main(words)
    assert ran[0] == [*first, *SETTING, *others]
    assert ran[1:] == [[f"selector={name}", *SETTING, *others] for name in ("random", "flash_answered")]


def test_what_a_run_does_not_measure_is_a_dash(
    ran: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """eval.clients_every=0 was a KeyError after three runs."""
    monkeypatch.setattr(demo, "train", lambda words: {"final": {"test/acc": 0.5, "time/virtual_s": 4511.0}})
    demo.main(["eval.clients_every=0"])
    lines = {line.split("│")[1].strip(): line for line in capsys.readouterr().out.splitlines() if line[:1] == "│"}
    assert lines["test accuracy"].count("50.0 %") == 3
    assert lines["virtual time"].count("75 min 11 s") == 3
    assert lines["worst 5 % of clients"].count(" - ") == 3


def test_an_earlier_runs_summary_is_not_taken_for_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs" / "runs" / "before").mkdir(parents=True)
    (tmp_path / "logs" / "runs" / "before" / "summary.json").write_text('{"final": {}}')
    (tmp_path / "train.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=r"callback\.summary=null left none: it needs callback\.summary"):
        demo.train(["callback.summary=null"])


@pytest.mark.parametrize("before", [None, "1"])
def test_the_run_has_the_users_environment(
    before: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A word that there isn't was a traceback of Hydra's: the run's process was told to raise, as `fedcohort` is."""
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    if before is not None:
        monkeypatch.setenv("HYDRA_FULL_ERROR", before)
    (tmp_path / "train.py").write_text("import os, sys\nsys.exit(str(os.environ.get('HYDRA_FULL_ERROR')))\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        in_one_line(lambda: demo.train(["selector=nosuch"]), [], ROOT / "configs")
    assert capfd.readouterr().err == f"{before}\n"


def test_a_yardstick_is_not_run_twice_and_another_setting_is_taken(
    ran: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    demo.main(["selector=random", "heterogeneity=iid"])
    assert ran == [["selector=random", "heterogeneity=iid"], ["selector=flash_answered", "heterogeneity=iid"]]
    assert demo.SAID not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["selector=oort", "selector.alpha=1"], True),
        (["clients=20"], False),
        (["label_noise.rate=0.5"], False),
        (["agg=scaffold"], False),
    ],
)
def test_the_title_says_nothing_of_another_setting(
    ran: list[list[str]], words: list[str], shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """With clients=20 or other noise it isn't 35 of 50 clients who have 90 % wrong labels."""
    demo.main(words)
    said = " ".join(capsys.readouterr().out.split())
    assert (demo.SAID in said) is shown


@pytest.mark.parametrize("word", ["-m", "paths.logs=elsewhere"])
def test_what_would_move_the_runs_is_refused(ran: list[list[str]], word: str) -> None:
    with pytest.raises(OptionError, match=f"the demo takes words of train.py, but not '{word}'"):
        demo.main([word])
    assert not ran


def test_what_it_says_is_what_the_study_found(tmp_path: Path) -> None:
    """The regime is the study's, the selector its best method there, and the sentence about noise is the config's."""
    study = load_study(STUDY)
    assert set(demo.SETTING) == set(study.settings["bimodal70"].overrides)
    methods = judge(study, load_results(study)).settings["bimodal70"].better()
    assert methods[0].method == demo.BEST
    composed = compose_words(*collect_words(tmp_path, *demo.SETTING, small=False))
    noise, clients = composed.config["label_noise"], composed.config["clients"]
    many = f"{round(noise['share'] * clients)} of {clients} clients"
    assert f"{many} have {100 * noise['rate']:.0f} % wrong labels" == demo.SAID
