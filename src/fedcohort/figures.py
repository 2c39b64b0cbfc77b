"""Draw the figures of a run again: python -m fedcohort.figures RUN_FOLDER..."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fedcohort.callback.console import for_each
from fedcohort.callback.figures import redraw


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 0 where every folder's figures were drawn."""
    parser = argparse.ArgumentParser(prog="python -m fedcohort.figures", description=__doc__)
    parser.add_argument("folder", nargs="+", type=Path, help="folder of a run, running or ended")
    return for_each(parser.parse_args(arguments).folder, lambda folder: "\n".join(map(str, redraw(folder))))


if __name__ == "__main__":
    sys.exit(main())
