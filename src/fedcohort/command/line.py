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

RUN_COMMAND = "run"  # train.py itself, so that both ways to start a run are one
COMMANDS = {
    RUN_COMMAND: "Train: the same as python train.py, in the folder that holds it.",
    "demo": "Compare a selector with random selection and the best one on digits, in about a minute.",
    "diagnose": "Measure how the clients of a federation differ, and name the selection that should pay.",
    "sweep": "Show the status of a sweep, or cancel it.",
    "compare": "Compare runs that MLflow knows: a table over seeds with paired differences, and figures.",
    "replay": "Replay a logged run with another selector, without training.",
    "evaluate-policy": "Estimate what another selector's cohorts would have gained in the steps of logged runs.",
    "study": "Run, follow, tune and report a study: settings x methods x seeds.",
    "protocol": "Compare your selector with random selection by the evaluation protocol, and verify such a result.",
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
CONFIG_COMMANDS = ("data", "methods", "profile")  # commands that have no use in another folder than that of configs/
HELP_ARGUMENTS = {"-h", "--help", "help"}


def to_module_name(command: str) -> str:
    """Return the name of the module of `command` in this package: a dash becomes an underscore."""
    return command.replace("-", "_")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that was typed, and return the exit code; 2 for a command or an option that does not exist.

    Args:
        arguments: the command and its arguments; None for those of the process.
    """
    typed_arguments = list(sys.argv[1:] if arguments is None else arguments)
    command, *command_arguments = typed_arguments or [""]
    if command == RUN_COMMAND:
        return _run_training(command_arguments)
    if command in COMMANDS and not HELP_ARGUMENTS & set(command_arguments):
        return _run_command(command, command_arguments)
    if command and not command.startswith("-") and command not in (*COMMANDS, *HELP_ARGUMENTS):
        similar_command = next(iter(difflib.get_close_matches(command, COMMANDS, 1)), None)
        command_hint = f"did you mean {similar_command}? " if similar_command else ""
        sys.stderr.write(f"there is no command {command!r}: {command_hint}fedcohort --help lists the commands\n")
        return 2
    try:
        _make_typer_app(command)(["--help"] if command in HELP_ARGUMENTS else typed_arguments, prog_name="fedcohort")
    except SystemExit as system_exit:
        return int(system_exit.code or 0)
    return 0


def console() -> None:
    """Run the program `fedcohort`, and exit with its code."""
    raise SystemExit(interrupt.run_main(main, "stopped"))


def _run_training(arguments: Sequence[str]) -> int:
    if not Path("train.py").exists():
        sys.stderr.write(f"fedcohort run is python train.py, and there is no train.py in {Path.cwd()}\n")
        return 2
    return os.execv(sys.executable, [sys.executable, "train.py", *arguments])


def _run_command(command: str, arguments: Sequence[str]) -> int:
    from fedcohort.startup.command_line import run_with_one_line_errors  # noqa: PLC0415 - imports Hydra

    if command in CONFIG_COMMANDS and not Path("configs").is_dir():
        folder_text = f"configs/, which is not in {Path.cwd()}"
        sys.stderr.write(f"fedcohort {command} reads {folder_text}: call it in the folder of train.py\n")
        return 2
    module = import_module(f"fedcohort.command.{to_module_name(command)}")
    return run_with_one_line_errors(lambda: module.main(arguments), arguments, Path.cwd() / "configs")


def _make_typer_app(command_name: str) -> "typer.Typer":
    """Return the typer application for help and completion, with the whole help of `command_name`."""
    import typer

    from fedcohort.command.completion import list_completions  # noqa: PLC0415

    typer_app = typer.Typer(
        help="A bench for client selection in heterogeneous federated learning.",
        epilog="Options are typed as name=value. fedcohort COMMAND --help lists those of a command.",
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    hidden_argument = typer.Argument(metavar="NAME=VALUE", hidden=True, autocompletion=list_completions)
    CommandArguments = Annotated[list[str] | None, hidden_argument]

    def represent_command(arguments: CommandArguments = None) -> None:
        """Stand for a command in typer's help, with its `arguments`; `main` runs the command."""

    for listed_name, summary in COMMANDS.items():
        help_text = summary
        if listed_name == command_name:  # the docstring of its module, without the import, which takes seconds
            module_path = Path(__file__).with_name(f"{to_module_name(listed_name)}.py")
            help_text = ast.get_docstring(ast.parse(module_path.read_text(encoding="utf-8"))) or summary
        preformatted_help = "\b\n" + help_text.replace("\n\n", "\n\n\b\n")  # \b keeps the lines of a paragraph
        typer_app.command(listed_name, help=preformatted_help, short_help=summary)(represent_command)
    return typer_app
