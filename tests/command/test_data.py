"""What `fedcohort data` shows is what a run trains on."""

from pathlib import Path

import pytest

from fedcohort.command import line
from run_harness import go
from yaml_words import ROOT


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert line.main(["data", *words, f"paths.logs={tmp_path}"]) == 0
    return capsys.readouterr().out.splitlines()


def test_it_is_what_a_run_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1,438 training digits, of which 5 % are the server's: 72."""
    words = ("clients=6", "partition=dirichlet", "label_noise=none", "seed=3")
    lines = shown(tmp_path, capsys, "digits", *words)
    ran = go(tmp_path / "run", *words, "cohort=2", "rounds=1")
    n, held = ran.info.n_train, ran.info.class_counts.sum(1)
    assert f"(checksum {ran.info.tags['data']}, seed 3)" in lines[0]
    assert (
        f"samples     {n.sum():,} for training, {held.sum() - n.sum()} for clients' validation, 72 the server's"
        in lines
    )
    assert "test        359 samples, 359 of them clients' own" in lines
    assert "a sample    1 x 8 x 8, float32" in lines
    assert f"clients     6 with {n.min()} / {sorted(n)[2] / 2 + sorted(n)[3] / 2:.0f} / {n.max()} samples" in lines[5]
    rows = [text.split() for text in lines if text.split()[0] in "012345"]
    assert [row[:2] for row in rows] == [[str(k), f"{held[k]:,}"] for k in range(6)]
    first = ran.info.class_counts[0]
    assert rows[0][4:7] == [str(first.argmax()), f"{100 * first.max() / first.sum():.0f}", "%,"]
    picture = tmp_path / "data" / "digits.png"
    assert lines[-1] == str(picture)
    assert picture.stat().st_size > 10_000


def test_a_large_population_is_cut_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(tmp_path, capsys, "digits", "clients=23")
    assert "... and 3 more" in lines
    assert sum(text[:1] == " " and text.split()[0].isdecimal() for text in lines) == 20


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name the dataset: fedcohort data digits"),
        (["clients=3"], "name the dataset: fedcohort data digits"),
        (["digit"], "dataset must be one of celeba, cifar10"),
        (["mnist", "dataset.path=/nowhere"], "dataset.path=/nowhere: there is no such folder"),
        (["digits", "clients=90000"], "clients=90000 needs 270000 training samples"),
    ],
)
def test_what_it_refuses_in_one_line(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert line.main(["data", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
