"""fedcohort figures RUN_FOLDER... [round=N] [formats=png,pdf,svg]: draw the figures of runs again, running or ended.

With round=N only what explains that round is drawn: figures/round-N.png, of selectors that score (who was available,
what each client scored and of which parts, who was selected, who arrived), and figures/timeline-N.png, where time
passes (who downloaded, trained and uploaded when, who was late, when the round closed). formats, png by default, also
writes PDF or SVG files, which scale without loss in a paper.
"""

from collections.abc import Sequence

from fedcohort import ranges
from fedcohort.command.words import folders_and_options
from fedcohort.console.terminal import for_each
from fedcohort.report.run_figures import check_formats, explain, redraw


def main(words: Sequence[str]) -> int:
    """The command; 0 where every folder's figures were drawn. Raises `OptionError`."""
    folders, options = folders_and_options(words, ("round", "formats"))
    text, formats = options.get("round"), check_formats(options.get("formats", "png").split(","))
    if text is None:
        return for_each(folders, lambda folder: "\n".join(map(str, redraw(folder, formats))))
    ranges.integer("round", int(text) if text.isdecimal() else text, "[1, inf)")
    return for_each(folders, lambda folder: "\n".join(map(str, explain(folder, int(text), formats))))
