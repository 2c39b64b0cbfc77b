"""The command line `fedcohort COMMAND ...`. Each command is a module of this package with a function `main(arguments)`.

Options are typed as name=value, as in Hydra. Typer serves help and completion, and is imported for these alone.
"""

import ast
import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fedcohort.host import interrupt

if TYPE_CHECKING:
    import typer

RUN = "run"  # train.py itself, so that both ways to start a run are one
COMMANDS = {
    RUN: "Train: the same as python train.py, in the folder that holds it.",
    "demo": "Compare a selector with random selection and the best one on digits, in about a minute.",
    "diagnose": "Measure what a federation is like, and say which selection should pay.",
    "sweep": "Show the status of a sweep, or cancel it.",
    "compare": "Compare runs that MLflow knows: a table over seeds with paired differences, and figures.",
    "replay": "Replay a logged run with another selector, without training.",
    "evaluate-policy": "Estimate what another selector's cohorts would have gained in the steps of logged runs.",
    "study": "Run, follow, tune and report a study: settings x selectors x seeds.",
    "figures": "Draw a run's figures again, or explain one round.",
    "methods": "Print the choices of a group, or the signals with their costs, as a table.",
    "profile": "Measure where a round's time goes, stage by stage.",
    "data": "Propose the options for your own table or images, or show a dataset's split; no training.",
    "prepare": "Convert raw files (images, LEAF's JSON, CelebA, WaterBirds, Spawrious) to Parquet tables.",
    "sync": "Send the missing rounds and files of a run to MLflow.",
    "ui": "Start MLflow's server, and print the page with the runs of the newest sweep.",
    "new": "Write the three files of a new selector, aggregator, signal, dataset or model.",
    "completion": "Print the lines that make a shell complete commands, groups and choices.",
}
READ_CONFIGS = ("data", "methods", "profile")  # commands that have no use in another folder than that of configs/
HELP = {"-h", "--help", "help"}


def module_name(command: str) -> str:
    """Return the name of a command's module in this package."""
    return command.replace("-", "_")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that was typed, and return the exit code; 2 for a command or an option that does not exist.

    arguments: the arguments, None for those of the process.
    """
    typed_arguments = list(sys.argv[1:] if arguments is None else arguments)
    name, *options = typed_arguments or [""]
    if name == RUN:
        return _train(options)
    if name in COMMANDS and not HELP & set(options):
        return _run_command(name, options)
    if name and not name.startswith("-") and name not in (*COMMANDS, *HELP):
        similar_command = next(iter(difflib.get_close_matches(name, COMMANDS, 1)), None)
        suggestion = f"did you mean {similar_command}? " if similar_command else ""
        sys.stderr.write(f"there is no command {name!r}: {suggestion}fedcohort --help lists the commands\n")
        return 2
    try:
        _describe(name)(["--help"] if name in HELP else typed_arguments, prog_name="fedcohort")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def console() -> None:
    """Run the program `fedcohort`, and exit with its code."""
    raise SystemExit(interrupt.run_main(main, "stopped"))


def _train(arguments: Sequence[str]) -> int:
    if not Path("train.py").exists():
        sys.stderr.write(f"fedcohort run is python train.py, and there is no train.py in {Path.cwd()}\n")
        return 2
    return os.execv(sys.executable, [sys.executable, "train.py", *arguments])


def _run_command(name: str, arguments: Sequence[str]) -> int:
    from fedcohort.startup.command_line import run_with_one_line_errors  # noqa: PLC0415 - imports Hydra

    if name in READ_CONFIGS and not Path("configs").is_dir():
        sys.stderr.write(
            f"fedcohort {name} reads configs/, which is not in {Path.cwd()}: call it in the folder of train.py\n"
        )
        return 2
    results: list[int] = []
    module = import_module(f"fedcohort.command.{module_name(name)}")
    configs = Path.cwd() / "configs"
    return run_with_one_line_errors(lambda: results.append(module.main(arguments)), arguments, configs) or results[-1]


def _describe(command_name: str) -> "typer.Typer":
    """Return the typer application for help and completion; chosen: the command whose whole help is included."""
    import typer

    from fedcohort.command.completion import candidates  # noqa: PLC0415

    app = typer.Typer(
        help="A bench for client selection in heterogeneous federated learning.",
        epilog="Options are typed as name=value. fedcohort COMMAND --help lists those of a command.",
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    argument = typer.Argument(metavar="NAME=VALUE", hidden=True, autocompletion=candidates)
    Arguments = Annotated[list[str] | None, argument]

    def command(arguments: Arguments = None) -> None:
        """Represent a command in the help; `main` runs it."""

    for name, summary in COMMANDS.items():
        help_text = summary
        if name == command_name:  # the docstring of its module, without the import, which takes seconds
            source = Path(__file__).with_name(f"{module_name(name)}.py")
            help_text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or summary
        kept_as_typed = "\b\n" + help_text.replace("\n\n", "\n\n\b\n")  # \b keeps the lines of a paragraph
        app.command(name, help=kept_as_typed, short_help=summary)(command)
    return app
