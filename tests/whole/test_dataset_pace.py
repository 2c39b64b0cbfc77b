"""The benchmark of datasets measures a small one through, and its table says what it measured."""

import pytest

from scripts import load_script
from yaml_words import CONFIGS


def test_a_small_dataset_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = load_script("dataset_pace", monkeypatch)
    found = pace.measured("digits", ("clients=20", "split.limit=300", "cohort=2"), rounds=3)
    assert found.clients == 20
    assert 0.8 * 300 < found.samples < 300
    assert found.held > 360 * (64 * 4 + 8)  # the test part is whole
    assert found.round_s > 0
    assert found.peak >= 0
    *_, line = pace.page([found], load=0.0).splitlines()
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:3] == ["`digits`", "`clients=20 split.limit=300 cohort=2`", "20"]
    assert len(cells) == 8


def test_every_dataset_but_the_users_own_has_a_network_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = load_script("dataset_pace", monkeypatch)
    assert set(pace.FITTING) == {path.stem for path in (CONFIGS / "dataset").glob("*.yaml")} - {"folder"}
    with pytest.raises(SystemExit, match="imagenet: name datasets out of digits, "):
        pace.main(["imagenet=data"])
