"""Files, tests, commands and options that the documents name exist."""

import ast
import re
import tomllib
from pathlib import Path

from case_loop import for_all
from config_options import CONFIGS, ROOT
from fedcohort.command.line import COMMANDS

DOCUMENTS = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "papers").glob("*.md")),
]
USER_NAMES = ("mine", "my_", "results.md", "stale_loss")  # names that a reader chooses


@for_all("path", DOCUMENTS)
def test_documented_paths_commands_and_options_exist(path: Path) -> None:
    text = path.read_text()
    files = re.findall(r"(?<![\w/.])((?:src|tests|configs|docs|benchmarks)/[\w/.]*\w)", text)
    assert [file for file in files if not (ROOT / file).exists() and not any(m in file for m in USER_NAMES)] == []
    links = re.findall(r"\]\((?!http|#)([^)#]+)", text)
    links = [
        link for link in links if not link.startswith("../../actions/")
    ]  # pages of the website that hosts the repository
    assert [link for link in links if not (path.parent / link).exists()] == []
    verbs = re.findall(r"(?:`|^)fedcohort ([\w-]+)", text, re.MULTILINE)
    assert [verb for verb in verbs if verb not in COMMANDS and verb not in ("VERB", "COMMAND")] == []
    groups = {folder.name for folder in CONFIGS.iterdir() if folder.is_dir()}
    choices = [pair for pair in re.findall(r"(?<![\w.@/])(\w+)=([a-z]\w*)", text) if pair[0] in groups]
    unknown = [pair for pair in choices if not (CONFIGS / pair[0] / f"{pair[1]}.yaml").exists() and pair[1] != "null"]
    assert [pair for pair in unknown if not any(m in pair[1] for m in USER_NAMES)] == []


def test_selected_tests_exist() -> None:
    """Each term of `pytest FILES -k TERMS` is in the name of a test in the files, and each file has a selected test."""
    commands = [
        (command, re.findall(r"tests/[\w/.]+", command), re.findall(r"(?<= -k )\w+|(?<= -k )\"[^\"]+", command))
        for path in DOCUMENTS
        for command in re.findall(r"`pytest ([^`]+)`", path.read_text())
    ]
    assert len(commands) > 30
    for command, files, selections in commands:
        names = {file: re.findall(r"def (test_\w+)", (ROOT / file).read_text()) for file in files if selections}
        terms = [term for selection in selections for term in re.findall(r"\w+", selection) if term != "or"]
        for term in terms:
            assert any(term in name for tests in names.values() for name in tests), f"{command}: {term}"
        for file, tests in names.items():
            assert any(term in name for name in tests for term in terms), f"{command}: {file}"


def _messages() -> str:
    """Return all strings of the code, with a separator in the place of values."""
    texts = []
    for path in sorted((ROOT / "src" / "fedcohort").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                texts.append("".join(str(p.value) if isinstance(p, ast.Constant) else "|" for p in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(re.sub(r"%[.\d]*[a-z]|\{\w*\}", "|", node.value))
    return "\n".join(texts)


def test_messages_of_the_troubleshooting_page_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)
    external = ("operator torchvision", "fedcohort: command not found")
    messages = _messages()
    parts = [part.strip(" ();:?") for row in rows if not row.startswith(external) for part in row.split("...")]
    assert len(rows) >= 20
    assert [part for part in parts if part not in messages] == []


def test_each_study_and_each_package_has_a_line_in_the_docs() -> None:
    studies, architecture = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("studies", "architecture"))
    names = [path.parent.name for path in (ROOT / "studies").glob("*/study.yaml")]
    assert [name for name in names if not re.search(rf"^\|.*\b{name}\b", studies, re.MULTILINE)] == []
    packages = [path.parent.name for path in (ROOT / "src" / "fedcohort").glob("*/__init__.py")]
    layout = architecture.partition("```\nsrc/fedcohort/\n")[2].partition("```")[0]
    assert [name for name in packages if not re.search(rf"\b{name}/", layout)] == []
    assert min(len(names), len(packages)) > 20


def test_equivalent_mutants_quote_present_lines() -> None:
    """After a rename the quotes must be renamed as well, or `make mutants` prints these mutants again."""

    def remove_spaces(text: str) -> str:
        return "".join(text.split())

    entries = tomllib.loads((ROOT / "docs" / "mutants.toml").read_text())["equivalent"]
    quoted_lines = [(entry["file"], entry["before"]) for entry in entries]
    assert len(quoted_lines) > 20
    assert [q for q in quoted_lines if remove_spaces(q[1]) not in remove_spaces((ROOT / q[0]).read_text())] == []
