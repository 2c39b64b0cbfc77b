"""The ten reference runs give the stored results, which change only when results are meant to change."""

import json
from pathlib import Path

import pytest

import reference_runs


@pytest.mark.parametrize("name", reference_runs.RUNS)
def test_a_reference_run_gives_the_recorded_results(name: str, tmp_path: Path) -> None:
    stored = json.loads(reference_runs.STORED.read_text())[name]
    measured = reference_runs.measure(name, tmp_path)
    assert measured["choices"] == stored["choices"]
    assert measured["arrived"] == stored["arrived"]
    assert measured["metrics"] == pytest.approx(stored["metrics"], rel=1e-6, nan_ok=True)
