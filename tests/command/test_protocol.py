"""`fedcohort protocol`: a method is run, reported, verified and put on a leaderboard."""

import json
from pathlib import Path

import pytest
import yaml

from case_loop import for_all
from config_options import CONFIGS
from fedcohort.command import protocol, study
from fedcohort.errors import OptionError
from fedcohort.jobs.launch import LaunchOptions
from study.small_study import write_study

JSON_FILE = "logs/protocol/powd_quick/protocol.json"


@for_all(
    "words, message",
    [
        ([], "type fedcohort protocol VERB, where VERB is one of run, report, verify, leaderboard"),
        (["walk"], "type fedcohort protocol VERB"),
        (["run", "level=full"], "type fedcohort protocol run selector=NAME level=quick"),
        (["run", "selector=a", "file"], "type fedcohort protocol run selector=NAME level=quick"),
        (["report", "selector=a", "n_jobs=2"], "there is no option 'n_jobs'"),
        (["run", "selector=a", "launcher=submitit_local"], "its jobs outlive a killed sweep"),
        (["verify", "a", "hydra.launcher.partition=gpu"], "there is no option 'hydra.launcher.partition'"),
        (["verify"], "type fedcohort protocol verify FILE, one protocol.json"),
        (["verify", "a", "b"], "type fedcohort protocol verify FILE, one protocol.json"),
        (["leaderboard"], "type fedcohort protocol leaderboard FILE"),
    ],
)
def test_wrong_arguments_are_reported(words: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        protocol.parse_arguments(words)


def test_options_of_the_launcher_are_passed_on() -> None:
    words = ["run", "selector=a", "n_jobs=3", "hydra.launcher.partition=gpu"]
    _, files, options, launch = protocol.parse_arguments(words)
    assert (files, options["selector"], options["level"]) == ([], "a", "quick")
    assert launch == LaunchOptions("local", 3, options=["hydra.launcher.partition=gpu"])


def test_a_method_is_run_reported_verified_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"equal": {"overrides": ["heterogeneity=iid"]}, "uneven": {"overrides": ["heterogeneity=noniid30"]}}
    write_study(tmp_path / "studies" / "tiny", settings=settings, seeds=[3])
    levels = {"quick": [{"study": "tiny", "settings": None, "seeds": None}]}
    (tmp_path / "studies" / "protocol.yaml").write_text(yaml.safe_dump(levels))
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    message = (
        "not done: 6 runs, such as tiny equal random 3 .missing.: type fedcohort protocol run selector=powd level="
    )
    with pytest.raises(OptionError, match=message):
        protocol.main(["report", "selector=powd"])
    with pytest.raises(OptionError, match=r"methods must be some of .* got 'mine'"):
        protocol.main(["run", "selector=mine"])

    assert protocol.main(["run", "selector=powd"]) == 0
    output = capsys.readouterr().out
    count = "missing runs: 2 of powd, 2 of random at equal bytes, 2 of random; time not known before the first run"
    assert output.startswith(f"tiny: {count}\n")
    assert output.endswith("all runs are done: fedcohort protocol report selector=powd level=quick\n")
    assert protocol.main(["run", "selector=powd"]) == 0
    assert "tiny: missing runs: 0 of powd, 0 of random at equal bytes, 0 of random\n" in capsys.readouterr().out

    assert protocol.main(["report", "selector=powd"]) == 0
    assert capsys.readouterr().out == f"logs/protocol/powd_quick/README.md\n{JSON_FILE}\n"
    runs = {(run["cell"], run["selector"]): run for run in json.loads(Path(JSON_FILE).read_text())["runs"]}
    reference, method = runs["equal", "same_bytes:powd"], runs["equal", "powd"]
    assert f"until.bytes={method['bytes']!r}" in reference["overrides"]
    assert reference["rounds"] > method["rounds"]

    assert protocol.main(["verify", JSON_FILE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line for line in lines if line.endswith("equal to the bit")) == [
        f"tiny {cell} {name} seed 3: equal to the bit" for cell in ("equal", "uneven") for name in ("powd", "random")
    ]
    assert protocol.main(["leaderboard", JSON_FILE]) == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("| powd | "))
    assert row.endswith(f"| {JSON_FILE} |")

    check_tampered_files(capsys)
    check_pages_of_the_study(capsys)


def check_tampered_files(capsys: pytest.CaptureFixture[str]) -> None:
    """A changed result is found in each setting, with its cause; a missing selector is named with its files."""
    text = Path(JSON_FILE).read_text()
    content = json.loads(text)
    for run in content["runs"]:
        if run["selector"] == "powd":
            run |= {"late": run["late"] / 2, "processor": "Z80", "sources": "0"}
    Path("changed.json").write_text(json.dumps(content))
    assert protocol.main(["verify", "changed.json"]) == 1
    output = capsys.readouterr().out
    assert output.count("powd seed 3: differs\n  columns: late\n  result 0.") == 2
    assert output.count("\n  processor 'Z80', here '") == output.count("\n  sources '0', here '") == 2
    assert output.count("random seed 3: equal to the bit") == 2

    Path("mine.json").write_text(text.replace("powd", "mine"))
    files = "add its configs/selector/mine.yaml and src/fedcohort/selector/mine.py"
    with pytest.raises(OptionError, match=f"mine.json: this copy of fedcohort lacks the selector mine: {files}"):
        protocol.main(["verify", "mine.json"])


def check_pages_of_the_study(capsys: pytest.CaptureFixture[str]) -> None:
    """The study's page has no run of the command, and the copy in the logs has the reference without a test."""
    assert study.main(["report", "tiny"]) == 0
    assert "powd: mean rank" in capsys.readouterr().out
    assert "powd" not in Path("studies/tiny/README.md").read_text()
    page = Path("logs/studies/tiny/README.md").read_text()
    assert "| same_bytes:powd | " in page
    assert "of 2 methods" not in page.partition("## ")[0]
