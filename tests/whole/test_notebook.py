"""The notebook runs from its first cell to its last, and draws what it says."""

import json
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest

from yaml_words import ROOT

PLACE = 'LOGS = ROOT / "logs"'


def test_every_cell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = json.loads((ROOT / "docs" / "a_run_in_pandas.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert sum(PLACE in source for source in code) == 1
    assert not any(cell.get("outputs") for cell in cells), "what it shows is made where it is run"
    monkeypatch.chdir(ROOT / "docs")  # where Jupyter runs it
    names: dict[str, Any] = {}
    backend = matplotlib.get_backend()
    matplotlib.use("agg")
    try:
        for source in code:
            exec(source.replace(PLACE, f"LOGS = Path({str(tmp_path)!r})"), names)
        drawn = [[axes.get_xlabel() for axes in plt.figure(number).axes] for number in plt.get_fignums()]
    finally:
        plt.close("all")
        matplotlib.use(backend)
    assert drawn == [["virtual time, minutes"], ["wrong labels, %"], ["communication round"]]
    assert sorted(path.name.split("-")[0] for path in (tmp_path / "runs").iterdir()) == ["flash", "random"]
    assert names["final"].loc["test/acc"].min() > 0.3
    assert names["facts"][["flash", "random"]].sum().tolist() == [50 + 9 * 10, 10 * 10], "FLASH begins with everybody"
