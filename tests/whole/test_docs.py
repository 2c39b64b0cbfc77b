"""What the documents name is there: files, tests, modules, verbs, words."""

import re
from pathlib import Path

import pytest

from fedcohort.command.line import COMMANDS
from yaml_words import CONFIGS, ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MADE = ("mine", "my_", "results.md", "stale_loss")  # what a reader makes


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documented_paths_commands_and_options_exist(path: Path) -> None:
    text = path.read_text()
    files = re.findall(r"(?<![\w/.])((?:src|tests|configs|docs|benchmarks)/[\w/.]*\w)", text)
    assert [file for file in files if not (ROOT / file).exists() and not any(m in file for m in MADE)] == []
    links = re.findall(r"\]\((?!http|#)([^)#]+)", text)
    links = [link for link in links if not link.startswith("../../actions/")]  # pages of the host of the repository
    assert [link for link in links if not (path.parent / link).exists()] == []
    verbs = re.findall(r"(?:`|^)fedcohort (\w+)", text, re.MULTILINE)
    assert [verb for verb in verbs if verb not in COMMANDS and verb not in ("VERB", "COMMAND")] == []
    groups = {each.name for each in CONFIGS.iterdir() if each.is_dir()}
    typed = [pair for pair in re.findall(r"(?<![\w.@/])(\w+)=([a-z]\w*)", text) if pair[0] in groups]
    unknown = [pair for pair in typed if not (CONFIGS / pair[0] / f"{pair[1]}.yaml").exists() and pair[1] != "null"]
    assert [pair for pair in unknown if not any(m in pair[1] for m in MADE)] == []
