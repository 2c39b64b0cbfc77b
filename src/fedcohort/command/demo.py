"""Compare a selector with random selection and with the best selector, in a setting where selection pays.

    fedcohort demo                          selector=flash
    fedcohort demo selector=mine client.lr=0.05

Three runs on one seed, which differ only in selector=: the one that is typed, random, and the best practical selector
of this setting in `studies/regimes_digits`.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort import units
from fedcohort.api.comparison import Comparison, compare
from fedcohort.api.run import INTERRUPTED_EXIT_CODE, run_with_overrides
from fedcohort.console.terminal import make_console
from fedcohort.errors import OptionError
from fedcohort.host.commands import format_fedcohort_command, shell_command
from fedcohort.report.comparison.tables import COST_FORMATS, COST_NAMES

if TYPE_CHECKING:
    from rich.table import Table

SETTING_OPTIONS = ("heterogeneity=noise_bimodal", "label_noise.share=0.7")
SETTING_TEXT = "35 of 50 clients have 90 % wrong labels"
DEFAULT_SELECTOR, BASELINE, BEST_SELECTOR = "flash", "random", "flash_answered"
REPORT_FOLDER = Path("logs/demo")
SHOWN_COSTS = ("virtual_s", "bytes", "client_flops")


def list_demo_runs(arguments: Sequence[str]) -> dict[str, list[str]]:
    """Return the overrides of each of the demo's runs, by selector.

    Options `selector.*` of `arguments` are for the selector that `selector=` names. Raises `OptionError` for options
    that change the folder of the runs.
    """
    if refused_options := [a for a in arguments if a.startswith(("-", "paths."))]:
        raise OptionError(f"leave out {refused_options[0]!r}: fedcohort demo makes single runs, in the folder logs")
    option_by_name = {a.split("=", 1)[0].lstrip("+~"): a for a in arguments}
    selector = option_by_name.get("selector", f"selector={DEFAULT_SELECTOR}").split("=", 1)[1]
    setting_options = [a for a in SETTING_OPTIONS if not {"heterogeneity", a.split("=", 1)[0]} & option_by_name.keys()]
    base_options = [*setting_options, *(a for n, a in option_by_name.items() if not f"{n}.".startswith("selector."))]
    selector_options = [a for n, a in option_by_name.items() if n.startswith("selector.")]
    demo_runs = {selector: [f"selector={selector}", *selector_options, *base_options]}
    return demo_runs | {n: [f"selector={n}", *base_options] for n in (BASELINE, BEST_SELECTOR) if n != selector}


def make_demo_table(comparison: Comparison, table_title: str) -> "Table":
    """Return a table with each run's accuracy, its difference to random selection, and its costs.

    Each cost is also given as a multiple of the cost with random selection.

    Args:
        comparison: comparison of the demo's runs.
        table_title: title of the table.
    """
    from rich.table import Table

    cost_names = [COST_NAMES[c] for c in SHOWN_COSTS]
    demo_table = Table("selector", "test accuracy", f"against {BASELINE}", *cost_names, title=table_title)
    for result_row in comparison.table.to_dict("records"):
        difference_text = (
            "" if math.isnan(result_row["difference"]) else f"{100 * result_row['difference']:+.1f} points"
        )
        cost_texts = [
            COST_FORMATS[c](result_row[c])
            + ("" if math.isnan(result_row[f"{c}_times"]) else f" ({result_row[f'{c}_times']:.1f} ×)")
            for c in SHOWN_COSTS
        ]
        demo_table.add_row(
            str(result_row["selector"]), units.format_percent(result_row["mean"]), difference_text, *cost_texts
        )
    return demo_table


def main(arguments: Sequence[str] = ()) -> int:
    """Run the demo with the options `arguments` in place of its defaults; return 0, or 130 after an interruption.

    The demo ends with the first run that is interrupted. Raises `OptionError` for an invalid option.
    """
    output_console, demo_runs, run_results = make_console(), list_demo_runs(arguments), []
    for run_number, overrides in enumerate(demo_runs.values(), 1):
        command_text = f"{shell_command('python')} train.py {' '.join(overrides)}"
        output_console.print(f"\nrun {run_number} of {len(demo_runs)}: {command_text}", soft_wrap=True, markup=False)
        run_results.append(run_with_overrides(overrides))
        if run_results[-1].status != "finished":
            return INTERRUPTED_EXIT_CODE
    comparison = compare(run_results, baseline=BASELINE)
    page_path, *_ = comparison.write(REPORT_FOLDER)
    base_options = demo_runs[BASELINE][1:]
    base_text = " ".join(base_options)
    output_console.print()
    # any other option may change the clients, or how many there are
    table_title = f"Where selection pays: {SETTING_TEXT}" if base_options == list(SETTING_OPTIONS) else ""
    output_console.print(make_demo_table(comparison, table_title))
    for closing_line in (
        "Test accuracy is the mean of the last sixth of the rounds: that of a single round varies more.",
        f"Report: {page_path}",
        "With identical clients no method is significantly better than random selection, and with label noise methods "
        "that prefer high losses are far worse: studies/regimes_digits/README.md",
        f"For more seeds: {shell_command('python')} train.py -m selector={','.join(demo_runs)} {base_text} seed=0,1,2",
        f"See them all: {format_fedcohort_command('ui')} sweep=null",
    ):
        output_console.print(closing_line, soft_wrap=True, markup=False)
    return 0
