"""Execute a notebook without Jupyter: `python tests/notebook_runner.py docs/tutorial_python.ipynb` writes its outputs.

The output of a cell is its printed text, the figures that it leaves open, and the value of its last expression.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import matplotlib

ROOT = Path(__file__).resolve().parents[1]
NAME = "notebook_cells"  # module name of the cells


def execute(path: Path, **replaced: str) -> tuple[dict[str, Any], types.ModuleType]:
    """Run the code cells in the notebook's folder; return the notebook with outputs, and the cells' variables.

    Args:
        path: path of the notebook.
        replaced: Python source of values that replace those of the cells, by variable name.
    """
    import matplotlib.pyplot as plt  # noqa: PLC0415 - after the backend

    notebook: dict[str, Any] = json.loads(path.read_text())
    module = sys.modules[NAME] = types.ModuleType(NAME)
    before, folder = matplotlib.get_backend(), Path.cwd()
    matplotlib.use("agg")
    os.chdir(path.parent)
    count = 0
    try:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                source = "".join(cell["source"])
                for name, value in replaced.items():
                    source = source.replace(f"{name} = ", f"{name} = {value}  # ", 1)
                cell["execution_count"], cell["outputs"] = count, _run(source, module.__dict__, count)
                plt.close("all")
    finally:
        os.chdir(folder)
        matplotlib.use(before)
        del sys.modules[NAME]
    return notebook, module


def _run(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run a cell and return its outputs."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    for number in plt.get_fignums():
        image = io.BytesIO()
        plt.figure(number).savefig(image, format="png", dpi=80, bbox_inches="tight")
        data = {"image/png": base64.b64encode(image.getvalue()).decode(), "text/plain": ["<Figure>"]}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    if value is not None and not type(value).__module__.startswith("matplotlib"):
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        outputs.append({"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}})
    return outputs


def _lines(text: str) -> list[str]:
    """Return the lines of an output, without the path of this checkout."""
    return text.replace(f"{ROOT}/", "").splitlines(keepends=True)


if __name__ == "__main__":
    path = Path(sys.argv[1]).resolve()
    output_cells, _ = execute(path)
    path.write_text(json.dumps(output_cells, indent=1, ensure_ascii=False) + "\n")
