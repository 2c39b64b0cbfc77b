"""The results page: python benchmarks/papers/page.py writes benchmarks/papers/README.md

One section a script: what it does (its opening comment), what came out (tables, in the folder of the script's name),
and what we make of it (notes.md there, written by hand). Before them all of it in a few lines (summary.md, by hand).
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


def _under(word: str, text: str) -> str:
    """Put the table's word before its first heading."""
    return re.sub(r"^### ", f"### {word}: ", text.strip(), count=1, flags=re.MULTILINE)


def section(name: str) -> str:
    """A script's section; without results it says so."""
    lines = (HERE / f"{name}.sh").read_text().splitlines()[1:]
    comment = lines[: next(i for i, line in enumerate(lines) if not line.startswith("#"))]
    parts = [f"## {name}", " ".join(line.removeprefix("# ") for line in comment)]
    notes = HERE / name / "notes.md"
    if notes.exists():
        parts.append(notes.read_text().strip())
    order = re.findall(r"^ *table (\w+) ", "\n".join(lines), re.MULTILINE)
    found = {path.parent.name: path for path in sorted((HERE / name).glob("*/table.md"))}
    names = [each for each in order if each in found] + [each for each in found if each not in order]
    for each in names:
        tables = (found[each], found[each].with_name("target.md"))
        parts += [_under(each, table.read_text()) for table in tables if table.exists()]
    parts += [path.read_text().strip() for path in sorted((HERE / name).glob("*.md")) if path.name != "notes.md"]
    return "\n\n".join(parts if len(parts) > 2 else [*parts, "Not run yet."])


if __name__ == "__main__":
    summary = (HERE / "summary.md").read_text().strip()
    text = "\n\n".join([OPENING.strip(), summary, *map(section, ORDER)])
    (HERE / "README.md").write_text(text + "\n")
