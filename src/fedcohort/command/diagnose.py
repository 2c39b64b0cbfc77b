"""fedcohort diagnose RUN_FOLDER, or fedcohort diagnose dataset=... [option=value ...]: how clients differ.

    fedcohort diagnose dataset=digits heterogeneity=noise_bimodal    trains with random selection, probes twice, stops
    fedcohort diagnose logs/runs/NAME                                reads the log of a run, running or ended

The page says whether a group of clients has more wrong labels, how uneven cohorts are in classes, whether speeds
persist, what to use, and what the measurement cost. With options the run is selector=auto selector.act=false, which
selects at random and asks all clients for class_loss; rounds is the number that two probes need. diagnosis.html and
diagnosis.json are in the run's folder. The log of another run shows what its clients reported.
"""

from collections.abc import Sequence
from pathlib import Path

from fedcohort import ranges
from fedcohort.console.terminal import make_console, print_markdown
from fedcohort.diagnosis.label_noise import rounds_between_probes
from fedcohort.errors import OptionError
from fedcohort.report import diagnosis as page
from fedcohort.results.diagnosis import diagnose_run
from fedcohort.startup import components, compose
from fedcohort.startup.load import DATA_GROUPS, load_federation

N_PROBES = 2


def main(arguments: Sequence[str]) -> int:
    """Diagnose a run or a federation, print the page and write it; return the exit code 0.

    Raises `OptionError` if `arguments` are neither a run's folder nor the options of a run, and `CheckpointError` if
    the folder holds no run.
    """
    if not arguments:
        raise OptionError("type a run's folder, or the options of a run: fedcohort diagnose dataset=digits")
    names_folder = len(arguments) == 1 and ("=" not in arguments[0] or Path(arguments[0]).is_dir())
    run_folder = Path(arguments[0]) if names_folder else _train_with_random_selection(arguments)
    diagnosis = diagnose_run(run_folder)
    page_path = page.write_diagnosis_page(run_folder, diagnosis)
    print_markdown(page.describe_diagnosis(diagnosis, page.MAX_TERMINAL_ROWS))
    make_console().print(f"\nReport: {page_path}", soft_wrap=True, markup=False)
    return 0


def _train_with_random_selection(arguments: Sequence[str]) -> Path:
    """Train with random selection for as many rounds as two probes need, and return the run's folder.

    `arguments` are options of the run. Raises `OptionError` if one of them chooses the selector.
    """
    from fedcohort.api.run import run_with_overrides  # noqa: PLC0415 - imports torch

    option_names = {argument.split("=", 1)[0].lstrip("+~") for argument in arguments}
    if "selector" in option_names:
        raise OptionError("fedcohort diagnose selects at random: leave selector= out, or name the folder of a run")
    required_overrides = [f"selector.probes={N_PROBES}", "selector.act=false"]
    overrides = [
        "selector=auto",
        *arguments,
        *(
            required_override
            for required_override in required_overrides
            if required_override.split("=")[0] not in option_names
        ),
    ]
    if "rounds" not in option_names:
        overrides.append(f"rounds={_count_probe_rounds(overrides)}")
    return run_with_overrides(overrides).folder


def _count_probe_rounds(overrides: Sequence[str]) -> int:
    """Return how many rounds a run with `overrides` needs for two probes, queries of all clients' losses by class."""
    composition = compose.compose_run(overrides, Path.cwd() / "configs")
    config = composition.config
    n_clients = config["clients"]
    if n_clients is None:
        data_components = {group: components.make_component(composition, group) for group in DATA_GROUPS}
        n_clients = load_federation(composition, data_components).n_clients
    ranges.integer("cohort", config["cohort"], "[1, inf)")
    return N_PROBES * rounds_between_probes(config["selector"]["first"], n_clients, config["cohort"]) + 1
