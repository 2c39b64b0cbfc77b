"""The results page: python benchmarks/papers/page.py writes benchmarks/papers/README.md

One section a script: what it does (its opening comment), what any selector could have won there (the answer of the
study that asks so; gap.md, by hand, where none does or it has no runs), what we make of it (notes.md, by hand), and
what came out (tables, in the folder of the script's name). Before them all of it in a few lines (summary.md, by hand).
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
OPENING = """# The papers' experiments, on a CPU

Each section is a script of this folder, which runs sweeps and writes its tables beside itself; every figure is a mean
over seeds that all rows share, and each script says how many. The sizes are what a machine with two cores can do in an
hour, so that absolute numbers are not the papers'; orders and differences are what can be compared. Options are in
`configs/experiment/`. A script resumes where it was stopped, and `SEEDS=0,1` makes it shorter:

```bash
make demo                                     # sets .venv up
benchmarks/papers/ucb_cs_table1.sh
FASHION_MNIST=/data/fashion_mnist benchmarks/papers/flash_settings.sh
```

`python benchmarks/papers/page.py` writes this page.
"""
ORDER: tuple[str, ...] = ("ucb_cs_table1", "ucb_cs_fig3", "flash_settings", "flash_gamma", "flash_table1")
ORDER += ("flash_table1_robust", "regret", "feddiverse", "feddiverse_ablation", "fedmaba_table2", "fedmaba_term")
ORDER += ("fedmaba_full", "fedmaba_alpha", "drift", "fedbalancer_har", "fedbalancer_ablation", "fedbalancer_fashion")
ORDER += ("anchors",)
STUDIES = HERE.parents[1] / "studies"
GAPS = {  # the study that says what there was to win
    "ucb_cs_table1": "paper_ucb_cs_fairness",
    "ucb_cs_fig3": "paper_ucb_cs",
    "flash_settings": "paper_flash",
    "regret": "paper_regret",
    "feddiverse": "spurious_cmnist",
    "fedmaba_table2": "paper_fedmaba",
    "fedbalancer_har": "paper_fedbalancer",
}
BY_HAND = ("gap.md", "notes.md")  # what there was to win, where no study tells it, and what we make of it


def _under(word: str, text: str) -> str:
    """Put the table's word before its first heading."""
    return re.sub(r"^### ", f"### {word}: ", text.strip(), count=1, flags=re.MULTILINE)


def gap(study: str) -> list[str]:
    """Return what the study's page answers, before its first picture; nothing where it wasn't run."""
    page = STUDIES / study / "README.md"
    if not page.exists():
        return []
    _, question, answer = page.read_text().split("\n\n", 2)
    return [f"[What there was to win](../../studies/{study}/README.md): {question}", answer.partition("\n\n![")[0]]


def section(name: str) -> str:
    """A script's section; without results it says so."""
    lines = (HERE / f"{name}.sh").read_text().splitlines()[1:]
    comment = lines[: next(i for i, line in enumerate(lines) if not line.startswith("#"))]
    parts = [f"## {name}", " ".join(line.removeprefix("# ") for line in comment)]
    bare = len(parts)
    parts += gap(GAPS[name]) if name in GAPS else []
    by_hand = [HERE / name / each for each in BY_HAND]
    parts += [path.read_text().strip() for path in by_hand if path.exists()]
    order = re.findall(r"^ *table (\w+) ", "\n".join(lines), re.MULTILINE)
    found = {path.parent.name: path for path in sorted((HERE / name).glob("*/table.md"))}
    names = [each for each in order if each in found] + [each for each in found if each not in order]
    for each in names:
        tables = (found[each], found[each].with_name("target.md"))
        parts += [_under(each, table.read_text()) for table in tables if table.exists()]
    parts += [path.read_text().strip() for path in sorted((HERE / name).glob("*.md")) if path.name not in BY_HAND]
    return "\n\n".join(parts if len(parts) > bare else [*parts, "Not run yet."])


def page() -> str:
    """The whole page."""
    summary = (HERE / "summary.md").read_text().strip()
    return "\n\n".join([OPENING.strip(), summary, *map(section, ORDER)]) + "\n"


if __name__ == "__main__":
    (HERE / "README.md").write_text(page())
