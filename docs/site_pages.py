"""Add the generated pages to the documentation site: a hook of mkdocs.

The home page is README.md. The notebook becomes a page with its code and outputs. The reference is generated from the
yaml files of `configs` and from the docstrings of the commands, the signals and the Python types. The pages of the
studies and benchmarks are taken from their folders.
"""

import ast
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedcohort.command.line import COMMANDS, to_module_name

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "studies/README.md", "studies/*/README.md", "benchmarks/*.md")
PYTHON = {  # section of the page on Python: the objects in it
    "Run, sweep, compare": (
        "fedcohort.api.run.run",
        "fedcohort.api.run.RunResult",
        "fedcohort.api.sweep.sweep",
        "fedcohort.api.comparison.compare",
    ),
    "What a selector reads and returns": (
        "fedcohort.types.Population",
        "fedcohort.types.RoundContext",
        "fedcohort.types.Selection",
    ),
}
NOTEBOOK = "tutorial_python.ipynb"
LINK = re.compile(r"(\[[^\[\]]*\])\(([^)\s]+)\)")
BADGE = re.compile(r"^\[!\[CI\].*\n", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in docs."""
    from mkdocs.structure.files import File

    pages = {"index.md": BADGE.sub("", (ROOT / "README.md").read_text()).replace("](docs/", "](")}
    for pattern in PAGES:
        pages |= {str(path.relative_to(ROOT)): path.read_text() for path in ROOT.glob(pattern)}
    pages[NOTEBOOK.replace(".ipynb", ".md")] = "\n".join(describe_notebook())
    pages["reference/configuration.md"] = "\n".join(describe_options())
    pages["reference/commands.md"] = "\n".join(describe_commands())
    pages["reference/signals.md"] = "\n".join(describe_signals())
    pages["reference/python.md"] = "\n".join(describe_python())
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links at the site's pages; a link to a file that the site lacks becomes plain text."""
    folder = Path(page.file.src_uri).parent

    def resolve(match: re.Match[str]) -> str:
        text, target = match.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in path:
            return match[0]
        parts: list[str] = []
        for part in (folder / path).parts:
            parts = parts[:-1] if part == ".." else [*parts, part]
        uri = "/".join(parts).removeprefix("docs/")
        uri = "index.md" if uri == "README.md" else uri.replace(".ipynb", ".md")
        if files.get_file_from_path(uri) is None:
            return text[1:-1]
        up = "../" * len(folder.parts)
        return f"{text}({up}{uri}{'#' + anchor if anchor else ''})"

    return LINK.sub(resolve, markdown)


def describe_notebook() -> Iterator[str]:
    """Yield the lines of the page of the notebook: text, code, and outputs as text and pictures."""
    for number, cell in enumerate(json.loads((ROOT / "docs" / NOTEBOOK).read_text())["cells"]):
        source = "".join(cell["source"])
        yield from (source, "") if cell["cell_type"] == "markdown" else ("```python", source, "```", "")
        if number == 0:
            yield from (
                f'The page shows <a href="{NOTEBOOK}" download>a notebook</a> with the outputs of its cells.',
                "",
            )
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                url = "data:image/png;base64," + "".join(data["image/png"]).replace("\n", "")
                yield from (f'<img alt="figure of the cell above" src="{url}">', "")
            else:
                yield from ("```text", "".join(output.get("text") or data["text/plain"]).rstrip(), "```", "")


def describe_options() -> Iterator[str]:
    """Yield the lines of the page on configuration: each group with its files, whose comments describe the options."""
    yield from ("# Configuration", "")
    yield "Each folder of `configs` is a group, and each file in it is an option of the group: `selector=flash`."
    yield "Options of a file are set with the group's name: `selector.alpha=0.5`. Comments state type and range."
    yield from ("", "## train.yaml", "", *_yaml(ROOT / "configs" / "train.yaml"))
    for group in sorted(path for path in (ROOT / "configs").iterdir() if path.is_dir()):
        yield from ("", f"## {group.name}", "")
        for path in sorted(group.rglob("*.yaml")):
            yield from (f"### {group.name}={path.relative_to(group).with_suffix('')}", "", *_yaml(path), "")


def _yaml(path: Path) -> list[str]:
    return ["```yaml", *path.read_text().rstrip().splitlines(), "```"]


def describe_commands() -> Iterator[str]:
    """Yield the lines of the page on commands: summary and help of each."""
    yield from ("# Commands", "", "`fedcohort COMMAND --help` prints the same text.")
    for name, summary in COMMANDS.items():
        yield from ("", f"## fedcohort {name}", "", summary, "")
        path = ROOT / "src" / "fedcohort" / "command" / f"{to_module_name(name)}.py"
        if path.exists():
            yield from ("```text", ast.get_docstring(ast.parse(path.read_text())) or "", "```")


def describe_signals() -> Iterator[str]:
    """Yield the lines of the page on signals: the docstring of each module."""
    yield from ("# Signals", "", "A signal is a number or a vector that a client reports, or that the server knows.")
    yield from ("A selector lists in `needs` the signals that it reads, and its run is charged for them.", "")
    for path in sorted((ROOT / "src" / "fedcohort" / "signal").glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        if path.stem not in ("__init__", "base", "access"):
            body = text.removeprefix(f"{path.stem}: ")
            yield from (f"## {path.stem}", "", textwrap.dedent(body), "")


def describe_python() -> Iterator[str]:
    """Yield the lines of the page on Python: directives for mkdocstrings."""
    yield from ("# Python interface", "")
    for title, names in PYTHON.items():
        yield from (f"## {title}", "")
        for name in names:
            yield from (f"::: {name}", "    options: {heading_level: 3}", "")
