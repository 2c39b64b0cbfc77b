"""Commands for messages, which run when pasted, whether or not the Python environment is activated."""

import shlex
import shutil
import sys
from pathlib import Path


def format_fedcohort_command(subcommand: str) -> str:
    """Return `fedcohort` with a subcommand as typed in a shell, or `python -m fedcohort` if it is not installed."""
    has_command = Path(sys.executable).with_name("fedcohort").exists()
    program_text = shell_command("fedcohort") if has_command else f"{shell_command('python')} -m fedcohort"
    return f"{program_text} {subcommand}"


def shell_command(program_name: str) -> str:
    """Return the program `program_name` of this environment as typed in a shell: its name or its path."""
    program_path = Path(sys.executable).with_name(program_name)
    program_on_path = shutil.which(program_name)
    if not program_path.exists() or (program_on_path is not None and Path(program_on_path).absolute() == program_path):
        return program_name
    working_folder = Path.cwd()
    if program_path.is_relative_to(working_folder):
        program_path = program_path.relative_to(working_folder)
    return shlex.quote(str(program_path))
