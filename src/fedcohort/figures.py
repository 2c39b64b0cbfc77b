"""Draw the figures of a run again: python -m fedcohort.figures RUN_FOLDER... [round=N]

With round=N only what explains that round is drawn, figures/round-N.png: who was available, what each client scored and
of which parts, who was selected, who arrived.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fedcohort.callback.console import for_each
from fedcohort.callback.figures import explain, redraw

ROUND = "round="


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 0 where every folder's figures were drawn."""
    parser = argparse.ArgumentParser(
        prog="python -m fedcohort.figures", usage="%(prog)s RUN_FOLDER... [round=N]", description=__doc__
    )
    parser.add_argument("words", nargs="+", metavar="RUN_FOLDER", help="folder of a run, running or ended")
    words: list[str] = parser.parse_args(arguments).words
    folders = [Path(word) for word in words if not word.startswith(ROUND)]
    rounds = [word.removeprefix(ROUND) for word in words if word.startswith(ROUND)]
    if not folders:
        parser.error("name the folder of a run")
    if not rounds:
        return for_each(folders, lambda folder: "\n".join(map(str, redraw(folder))))
    wrong = [text for text in rounds if not text.isdecimal()]
    if wrong:
        parser.error(f"round must be an integer in [1, inf), got {wrong[0]!r}")
    return for_each(folders, lambda folder: "\n".join(str(explain(folder, int(text))) for text in rounds))


if __name__ == "__main__":
    sys.exit(main())
