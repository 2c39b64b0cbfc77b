"""`make lint`: count violations of the language and size rules, and fail where a count exceeds its ceiling.

    python -m lints            # compare the counts with ceilings.toml
    python -m lints --show "functions above 40 code lines"
    python -m lints --lower    # lower the ceilings to the present counts; they are never raised

Ceilings are what is left to improve. A change may lower them and may not raise them.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from lints import rules
from lints.rules import Hit, Source

ROOT = Path(__file__).resolve().parents[2]
OTHER_FOLDERS = ("tests", "benchmarks", "docs")  # whose Python code has the language rules only
CEILINGS = Path(__file__).with_name("ceilings.toml")


def count_all(root: Path) -> dict[str, list[Hit]]:
    """Return the hits of each rule in the repository at `root`."""
    sources = [Source.read(path) for path in sorted((root / "src").rglob("*.py"))]
    hits = {name: [hit for source in sources for hit in rule(source)] for name, rule in rules.SOURCE_RULES.items()}
    other_paths = [path for name in OTHER_FOLDERS for path in sorted((root / name).rglob("*.py"))]
    other_sources = [Source.read(path) for path in other_paths]
    for name in rules.LANGUAGE_RULES:
        hits[f"{name}, outside src"] = [hit for source in other_sources for hit in rules.SOURCE_RULES[name](source)]
    hits["unclear phrases in README"] = list(rules.markdown_prose(root / "README.md"))
    pages = sorted([*(root / "docs").glob("*.md"), *(root / "docs" / "papers").glob("*.md")])
    hits["unclear phrases in docs"] = [hit for path in pages for hit in rules.markdown_prose(path)]
    hits["docstrings not in the imperative (D401)"] = _imperative(root)
    return hits


def _imperative(root: Path) -> list[Hit]:
    """Return what ruff's D401 finds in src."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--select",
        "D401",
        "--output-format",
        "concise",
        "--exit-zero",
        "src",
    ]
    output = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    places = re.findall(r"^(\S+?):(\d+):\d+: (D401 .*)$", output, re.MULTILINE)
    return [Hit(root / path, int(line), text) for path, line, text in places]


def compare(counts: dict[str, int], ceilings: dict[str, int]) -> list[str]:
    """Return a sentence for each rule that has more violations than its ceiling allows."""
    return [
        f"{name}: {count}, and the ceiling is {ceilings.get(name, 0)}. See them with --show {name!r}."
        for name, count in counts.items()
        if count > ceilings.get(name, 0)
    ]


def main(arguments: Sequence[str]) -> int:
    """Print the counts; return 1 where one exceeds its ceiling."""
    parser = argparse.ArgumentParser(description="Count violations of the language and size rules.")
    parser.add_argument("--show", metavar="RULE", help="list the violations of one rule")
    parser.add_argument("--lower", action="store_true", help="lower the ceilings to the present counts")
    options = parser.parse_args(arguments)
    hits = count_all(ROOT)
    counts = {name: len(places) for name, places in hits.items()}
    ceilings: dict[str, int] = tomllib.loads(CEILINGS.read_text()) if CEILINGS.exists() else dict(counts)
    for hit in hits.get(options.show or "", ()):
        print(f"{hit.path.relative_to(ROOT)}:{hit.line}: {hit.text}")
    if options.lower:
        lowered_ceilings = {name: min(count, ceilings.get(name, count)) for name, count in counts.items()}
        CEILINGS.write_text(
            "# Counts of violations; they may only fall.\n"
            + "".join(f'"{k}" = {v}\n' for k, v in lowered_ceilings.items())
        )
        ceilings = lowered_ceilings
    for name, count in counts.items():
        print(f"{count:6d} of {ceilings.get(name, 0):6d}  {name}")
    failures = compare(counts, ceilings)
    print("\n".join(failures), end="\n" if failures else "")
    return int(bool(failures))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
