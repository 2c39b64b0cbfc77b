"""The README's table of selectors is what the docstrings say."""

from fedcohort.methods import rows
from yaml_words import CONFIGS, ROOT


def test_the_readme_says_what_the_docstrings_say() -> None:
    """A word that the table lacks is no fault: a new method is three files. `python -m fedcohort.methods` prints it."""
    made = rows("selector", CONFIGS)
    lines = (ROOT / "README.md").read_text().split("| word | method | reads |\n|---|---|---|\n")[1].splitlines()
    table = [line for line in lines[: lines.index("")] if line]
    assert len(table) > 4
    for line in table:
        assert line == made[line.split("`")[1]]


def test_an_alias_gives_its_comment() -> None:
    assert rows("agg", CONFIGS)["fedavgm"].startswith("| `fedavgm` | ")
    assert "nothing" in rows("selector", CONFIGS)["round_robin"]
