"""fedcohort figures RUN_FOLDER... [round=N] [formats=png,pdf,svg]: draw the figures of runs again, running or ended.

With round=N only the figures that explain that round are drawn. figures/round-N.png is of selectors that score: the
available clients, their scores and the parts of these, the selected and the arrived clients. figures/timeline-N.png is
of runs with devices: download, training and upload of each client, late clients, the end of the round. formats, png by
default, also writes PDF or SVG files, which scale without loss in a paper.
"""

from collections.abc import Sequence

from fedcohort import ranges
from fedcohort.command.arguments import read_folders_and_options
from fedcohort.console.terminal import print_for_each
from fedcohort.report.run_figures import check_figure_formats, draw_round, redraw_run


def main(arguments: Sequence[str]) -> int:
    """Draw figures of runs again; return 0 if those of every folder were drawn, else 2.

    Raises `OptionError` if `arguments` name no run folder, or have an unknown option.
    """
    run_folders, options = read_folders_and_options(arguments, ("round", "formats"))
    round_text, formats = options.get("round"), check_figure_formats(options.get("formats", "png").split(","))
    if round_text is None:
        return print_for_each(run_folders, lambda folder: "\n".join(map(str, redraw_run(folder, formats))))
    round = ranges.parse_integer("round", round_text, "[1, inf)")
    return print_for_each(run_folders, lambda folder: "\n".join(map(str, draw_round(folder, round, formats))))
