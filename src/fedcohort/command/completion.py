"""Print the lines that make a shell complete commands, groups, choices and options.

    eval "$(fedcohort completion bash)"        for this shell; add the line to ~/.bashrc for every shell

The shell is bash, zsh, fish or powershell. Groups and their choices are those of the folder configs/ where the command
is typed. `fedcohort --install-completion` adds the lines to the configuration of the shell that you use.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

SHELL_NAMES = ("bash", "zsh", "fish", "powershell")
# they take those of train.py
COMMANDS_WITH_RUN_OPTIONS = ("run", "diagnose", "replay", "evaluate-policy", "profile", "data", "demo", "protocol")


def list_completions(ctx: typer.Context, typed_start: str) -> list[str]:
    """Return the possible completions of the last argument of a command line.

    bash passes `selector=fl` as three arguments: the argument to complete is the part after the =.

    Args:
        ctx: typer's context, with the command and the arguments before the last.
        typed_start: the part of the last argument that was typed.
    """
    command_name, earlier_arguments, configs = ctx.info_name, list(ctx.params.get("arguments") or ()), Path("configs")
    all_groups = sorted(p.name for p in configs.glob("*") if p.is_dir())
    group_names = ["selector"] if command_name == "protocol" else all_groups
    if command_name == "new" and not earlier_arguments:
        from fedcohort.command.new import GROUP_BY_KIND  # noqa: PLC0415

        return [k for k in GROUP_BY_KIND if k.startswith(typed_start)]
    if command_name == "methods":
        return [group for group in group_names if group.startswith(typed_start)]
    if command_name not in COMMANDS_WITH_RUN_OPTIONS:
        return []
    group, equals_sign, typed_choice = typed_start.partition("=")
    last_arguments = earlier_arguments[-2:] if earlier_arguments[-1:] == ["="] else earlier_arguments[-1:]
    if not equals_sign and last_arguments and last_arguments[0] in group_names:
        return [c for c in _list_group_choices(configs, last_arguments[0]) if c.startswith(typed_start)]
    matching_groups = [g for g in group_names if (g == group if equals_sign else g.startswith(group))]
    if len(matching_groups) > 1:
        return [f"{g}=" for g in matching_groups]
    matching_choices = [(g, c) for g in matching_groups for c in _list_group_choices(configs, g)]
    return [f"{g}={c}" for g, c in matching_choices if c.startswith(typed_choice)]


def _list_group_choices(configs: Path, group: str) -> list[str]:
    return sorted(p.stem for p in (configs / group).glob("*.yaml"))


def main(arguments: Sequence[str]) -> int:
    """Print the lines for the shell that `arguments` names; raise `OptionError` for an unknown one."""
    # Here, as the help of every command imports this module for `list_completions`.
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # noqa: PLC0415

    from fedcohort import ranges  # noqa: PLC0415
    from fedcohort.errors import OptionError  # noqa: PLC0415

    if len(arguments) != 1:
        raise OptionError(f"type fedcohort completion SHELL, where SHELL is one of {', '.join(SHELL_NAMES)}")
    ranges.choice("the shell", arguments[0], *SHELL_NAMES)
    shell_script = get_completion_script(prog_name="fedcohort", complete_var="_FEDCOHORT_COMPLETE", shell=arguments[0])
    sys.stdout.write(f"{shell_script}\n")
    return 0
