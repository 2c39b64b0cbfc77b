"""All cells of the tutorial notebook run, and the committed outputs are those of its code."""

import json
from pathlib import Path

from config_options import ROOT
from notebook_runner import execute

NOTEBOOK = ROOT / "docs" / "tutorial_python.ipynb"
ROUNDS = 3  # instead of the 10 of the notebook


def test_every_notebook_cell_runs_and_its_outputs_are_current(tmp_path: Path) -> None:
    committed_cells = json.loads(NOTEBOOK.read_text())["cells"]
    notebook, names = execute(
        NOTEBOOK,
        LOGS=repr(str(tmp_path)),
        common=str({"rounds": ROUNDS, "paths": {"logs": str(tmp_path)}, "logger": "none"}),
    )
    kinds = [[output["output_type"] for output in cell.get("outputs", ())] for cell in notebook["cells"]]
    assert kinds == [[output["output_type"] for output in cell.get("outputs", ())] for cell in committed_cells], (
        "python tests/notebook_runner.py docs/tutorial_python.ipynb writes the outputs"
    )
    assert sum(kind == "display_data" for output_kinds in kinds for kind in output_kinds) == 3
    assert names.result.status == names.own.status == "finished"
    assert names.own.info.n_params == 16 * 64 + 16 + 10 * 16 + 10
    assert names.comparison.table["difference_n"].dropna().tolist() == [3.0]
    assert names.facts["selected"].sum() == 50 + (ROUNDS - 1) * 10, "FLASH begins with every client"
    assert NOTEBOOK.stat().st_size < 300_000
