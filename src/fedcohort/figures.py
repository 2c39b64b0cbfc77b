"""Draw the figures of a run again: python -m fedcohort.figures RUN_FOLDER..."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fedcohort.callback.figures import redraw
from fedcohort.errors import FedcohortError


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 0 where every folder's figures were drawn."""
    from rich.console import Console

    parser = argparse.ArgumentParser(prog="python -m fedcohort.figures", description=__doc__)
    parser.add_argument("folder", nargs="+", type=Path, help="folder of a run, running or ended")
    failed = 0
    for folder in parser.parse_args(arguments).folder:
        try:
            drawn = redraw(folder.absolute())
            Console(soft_wrap=True, highlight=False).print("\n".join(str(path) for path in drawn), markup=False)
        except FedcohortError as error:
            Console(stderr=True, soft_wrap=True, highlight=False).print(str(error), markup=False)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
