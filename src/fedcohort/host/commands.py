"""Commands for messages, which run when pasted, whether or not the Python environment is activated."""

import shlex
import shutil
import sys
from pathlib import Path


def fedcohort_command(subcommand: str) -> str:
    """Return `fedcohort` with a subcommand as typed in a shell, or `python -m fedcohort` if it is not installed."""
    is_installed = Path(sys.executable).with_name("fedcohort").exists()
    program_text = program_command("fedcohort") if is_installed else f"{program_command('python')} -m fedcohort"
    return f"{program_text} {subcommand}"


def program_command(program_name: str) -> str:
    """Return the program `program_name` of this environment as typed in a shell: its name or its path."""
    path = Path(sys.executable).with_name(program_name)
    found_program = shutil.which(program_name)
    if not path.exists() or (found_program is not None and Path(found_program).absolute() == path):
        return program_name
    working_folder = Path.cwd()
    return shlex.quote(str(path.relative_to(working_folder) if path.is_relative_to(working_folder) else path))
