"""The ten reference runs give what they gave when the code was last meant to change results."""

import json
from pathlib import Path

import pytest

import reference_runs


@pytest.mark.parametrize("name", reference_runs.RUNS)
def test_a_reference_run_gives_the_recorded_results(name: str, tmp_path: Path) -> None:
    stored = json.loads(reference_runs.STORED.read_text())[name]
    found = reference_runs.measure(name, tmp_path)
    assert found["choices"] == stored["choices"]
    assert found["arrived"] == stored["arrived"]
    assert found["metrics"] == pytest.approx(stored["metrics"], rel=1e-6, nan_ok=True)
