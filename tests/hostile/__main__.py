"""`make hostile KIND=tables`: run the cases of one kind of bad input, or of every kind."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from hostile.harness import run_cases

KINDS = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if "\ndef cases()" in path.read_text())


def main(kinds: Sequence[str]) -> int:
    """Run the cases of `kinds`, each a module here with a function `cases`; return 1 if any case failed."""
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise SystemExit(f"KIND={unknown[0]} is not one of {', '.join(KINDS)}")
    print("| kind | cases | rejected | accepted with a notice | failed |\n|---|---|---|---|---|")
    counts = [run_cases(kind, importlib.import_module(f"hostile.{kind}").cases()) for kind in kinds or KINDS]
    return int(any(count["failed"] for count in counts))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
