"""What `fedcohort data` shows is what a run trains on."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from config_options import ROOT
from fedcohort.command import data, line
from fedcohort.data import skew
from feddiverse_tables import write_spawrious
from image_tables import DATA_FOLDER
from optional_values import not_none
from run_harness import run_training


@pytest.fixture(autouse=True)
def in_tmp_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def print_data(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert line.main(["data", *arguments, f"paths.logs={tmp_path}"]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.usefixtures("rendered_figures")
def test_the_command_shows_the_data_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1,438 training digits, of which 5 % are the server's: 72."""
    overrides = ("clients=6", "partition=dirichlet", "label_noise=none", "seed=3")
    lines = print_data(tmp_path, capsys, "digits", *overrides)
    run = run_training(tmp_path / "run", *overrides, "cohort=2", "rounds=1")
    n, class_sizes = run.info.n_train, run.info.class_counts.sum(1)
    assert f"(checksum {run.info.tags['data']}, seed 3)" in lines[0]
    assert (
        f"samples     {n.sum():,} for training, {class_sizes.sum() - n.sum()} for clients' validation, 72 on the server"
        in lines
    )
    assert "test        359 samples, 359 of them in clients' test sets" in lines
    assert "sample      1 x 8 x 8, float32" in lines
    assert f"clients     6 with {n.min()} / {sorted(n)[2] / 2 + sorted(n)[3] / 2:.0f} / {n.max()} samples" in lines[5]
    rows = [text.split() for text in lines if text.split()[0] in "012345"]
    assert [row[:2] for row in rows] == [[str(k), f"{class_sizes[k]:,}"] for k in range(6)]
    first = run.info.class_counts[0]
    assert rows[0][4:7] == [str(first.argmax()), f"{100 * first.max() / first.sum():.0f}", "%,"]
    picture = tmp_path / "data" / "digits.png"
    assert lines[-1] == str(picture)
    assert picture.stat().st_size > 10_000


def test_a_large_population_is_abbreviated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = print_data(tmp_path, capsys, "digits", "clients=23")
    assert "... and 3 more" in lines
    assert sum(text[:1] == " " and text.split()[0].isdecimal() for text in lines) == 20


def test_a_scenarios_page_describes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For data without attributes the page has only the metrics of the classes.

    A hash of the clients' samples distinguishes seeds, and not changed labels; it has no path of this machine.
    """
    arguments = ("digits", "heterogeneity=noniid30_noise15", "clients=8")
    home = tmp_path / "page"
    assert print_data(tmp_path, capsys, *arguments, f"out={home}")[-1] == str(home / "README.md")
    page = (home / "README.md").read_text()
    assert page.startswith(
        "# dataset=digits heterogeneity=noniid30_noise15 clients=8\n\nFLASH's \"30% non-IIDness and 15%"
    )
    assert "\nfedcohort data digits heterogeneity=noniid30_noise15 clients=8 paths.logs=FOLDER\n" in page
    assert str(tmp_path) not in page
    run = run_training(tmp_path / "run", *arguments[1:], "cohort=2", "rounds=1")
    imbalances = {key: run.info.skew[f"{key}_ci"] for key in ("global", "client")}
    assert f"| class imbalance | {imbalances['global']:.4f} | {imbalances['client']:.4f} |" in page
    assert "spurious" not in page
    assert len(re.findall(r"^\| \d+ \| [\d,]+ \| [\d,]+ \| \d+ \| .* % \|$", page, re.MULTILINE)) == 8
    assert (home / "partition.png").is_file()

    def client_map(*overrides: str) -> str:
        print_data(tmp_path, capsys, *arguments, *overrides, f"out={tmp_path / 'other'}")
        return not_none(re.search(r"client map \| `(\w{16})`", (tmp_path / "other" / "README.md").read_text()))[1]

    assert client_map() == client_map("label_noise=none") == re.findall(r"`(\w{16})`", page)[0] != client_map("seed=1")


def test_the_page_counts_the_attributes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = f"dataset.path={write_spawrious(tmp_path, 100)}"
    arguments = ("spawrious", "heterogeneity=spawrious_gci", "dataset.size=8", raw)
    print_data(tmp_path, capsys, *arguments, f"out={tmp_path / 'page'}")
    page = (tmp_path / "page" / "README.md").read_text()
    assert "FedDiverse's Spawrious_GCI, for dataset=spawrious: 24 clients" in page.splitlines()[2]
    rows = [
        [float(cell) for cell in row.strip("| ").split(" | ")]
        for row in page.partition("| client | 0, 0 | 0, 1 | 1, 0 | 1, 1 | CI | AI | SC |\n")[2].splitlines()[1:]
    ]
    assert len(rows) == 24
    counts = np.array([row[1:5] for row in rows]).reshape(24, 2, 2)
    np.testing.assert_allclose([row[5:] for row in rows], skew.skew_triplets(counts), atol=6e-4)
    assert re.search(r"\| attribute imbalance \| 0.0\d+ \| 0.\d+ \|", page)


@pytest.mark.parametrize("scenario", ["cmnist_gsc", "natural"])
def test_the_committed_pages_are_those_of_the_command(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run the command that a page states, where the data are at hand; pages on CIFAR-10 would take a minute."""
    committed_page = (ROOT / "docs" / "scenarios" / scenario / "README.md").read_text()
    arguments = re.findall(r"^fedcohort data (.*)$", committed_page, re.MULTILINE)[0]
    folder = DATA_FOLDER / arguments.split()[0].replace("cmnist", "mnist")
    if not folder.is_dir():
        pytest.skip(f"no {folder}: the real data are shared, not committed")
    print_data(tmp_path, capsys, *arguments.replace("FOLDER", str(folder)).split(), f"out={tmp_path / 'page'}")
    generated = (tmp_path / "page" / "README.md").read_text()
    assert generated.replace(" paths.logs=FOLDER", "") == committed_page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a dataset, a file or a folder: fedcohort data digits"),
        (["clients=3"], "name a dataset, a file or a folder: fedcohort data digits"),
        (["digit"], "did you mean digits? NAME or PATH must be a file or folder in"),
        (["digit"], "or one of the datasets celeba, cifar10"),
        (["mnist", "dataset.path=/nowhere"], "dataset.path=/nowhere: there is no such file or folder"),
        (["digits", "out="], "out must be a text that is not empty, got ''"),
        (["digits", "out=pyproject.toml"], "out must be a writable folder, got 'pyproject.toml'"),
        (["digits", "out=/proc/x"], "out must be a writable folder, got '/proc/x'"),
        (["../model/mlp"], "or one of the datasets celeba, cifar10"),
        (["digits", "clients=90000"], "clients=90000 needs 270000 training samples"),
    ],
)
def test_errors_of_the_data_command_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert line.main(["data", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_unknown_name_is_compared_with_datasets_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "configs" / "dataset").mkdir(parents=True)
    for name in ("configs/dataset/mydata1.yaml", "mydata.csv", ".mydata"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert line.main(["data", "mydata"]) == 2
    message = f"NAME or PATH must be a file or folder in {tmp_path}, or one of the datasets mydata1, got 'mydata'"
    assert capsys.readouterr().err == f"did you mean mydata1 or mydata.csv? {message}\n"


@pytest.mark.parametrize(
    ("argument", "expected"),
    [("digits", False), ("mnist", False), ("../model/mlp", False), ("a/b", True), ("t.csv", True), ("~/t", True)],
)
def test_paths_are_distinguished_from_dataset_names(argument: str, expected: bool) -> None:
    assert data.is_data_path(argument) is expected


def test_commands_are_quoted_for_a_shell() -> None:
    overrides = ["dataset.path='my table.csv'", "dataset.label=x", "a=['$b']", "dataset.leave_out=[a,b]"]
    command = data.format_training_command(overrides)
    assert command.startswith("python train.py \"dataset.path='my table.csv'\" dataset.label=x ")
    assert shlex.split(command)[2:] == overrides


def test_the_printed_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    k = np.arange(240)
    frame = pd.DataFrame({"the age": 20.0 + k % 60, "sex": np.where(k % 2, "f", "m"), "site": k % 4})
    frame.assign(diagnosis=np.where(k % 3, "ill", "well")).to_csv(tmp_path / "my table.csv", sep=";", index=False)
    monkeypatch.chdir(ROOT)
    assert line.main(["data", str(tmp_path / "my table.csv"), f"paths.logs={tmp_path}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "label       dataset.label=diagnosis" in lines
    assert any(text.startswith("inputs      3: the age, sex (left out: site)") for text in lines)
    command = shlex.split(lines[-1])
    assert command[:4] == ["python", "train.py", "dataset=folder", f"dataset.path='{tmp_path}/my table.csv'"]
    overrides = [override for override in command[2:] if not override.startswith("paths.logs")]
    run = run_training(tmp_path / "logs", *overrides, "rounds=1", "callback=none", "logger=none", small=False)
    assert len(run.info.n_train) == 4
    assert run.info.tags["categories"] == '{"sex": ["f", "m"]}'


def test_a_missing_path_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert line.main(["data", "nowhere/patients.csv"]) == 2
    assert "dataset.path=nowhere/patients.csv: there is no such file or folder" in capsys.readouterr().err
