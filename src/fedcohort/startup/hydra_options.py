"""The options of Hydra that may be typed. The folders, the log and the callbacks of a run are those of fedcohort.

Hydra would write to a folder of its own, outside `paths.logs`, and call whatever its logging and callbacks name.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.ranges import refuse

SWEEP = "hydra.sweep.dir"
OPTIONS = (SWEEP, "hydra.sweeper", "hydra.launcher", "hydra.searchpath", "hydra.verbose", "hydra.job.env_set")
GROUPS = ("hydra/launcher", "hydra/sweeper", "hydra/help", "hydra/hydra_help", "hydra/hydra_logging")
CURES = {
    "hydra.run": "set paths.logs=FOLDER, or name=TEXT for the first part of the run folder's name",
    "hydra.output_subdir": "the run's folder has config.yaml",
    "hydra.mode": "put -m first for a sweep",
    "hydra.launcher.submitit_folder": "set paths.logs=FOLDER",
}
LOGS = "${paths.logs}"


def check(words: Sequence[str]) -> None:
    """Raise `OptionError` for a typed option of Hydra that would write elsewhere, or call what it names."""
    package = next((word for word in words if word.partition("=")[0] in ("-p", "--package")), None)
    if package is not None and not {"-c", "--cfg"} & {word.partition("=")[0] for word in words}:
        raise OptionError(f"{package} has an effect beside --cfg only: leave it out")
    typed = [word.lstrip("+~").partition("=") for word in words if not word.startswith("-")]
    logs = next((value for name, _, value in reversed(typed) if name == "paths.logs"), "logs")
    for name, _, value in typed:
        if not re.match(r"hydra\b", name):
            continue
        cure = next((cure for option, cure in CURES.items() if _is_below(name, option)), "leave it out")
        known = GROUPS if name.startswith("hydra/") else OPTIONS
        if name == "hydra.launcher.submitit_folder" or not any(_is_below(name, option) for option in known):
            raise OptionError(
                f"{name}={value} is refused, as fedcohort makes the folders, the log and the callbacks of a run: "
                f"{cure}; the options of Hydra that may be typed are {', '.join((*OPTIONS, *GROUPS))}"
            )
        if name == SWEEP and not is_inside(value, logs):
            raise refuse(SWEEP, f"a folder inside paths.logs, such as '{LOGS}/sweeps/NAME'", value)


def is_inside(folder: str, logs: str) -> bool:
    """Return whether `folder` is below the folder `logs`, links and `..` followed."""
    inside = folder.strip("'\"").replace(LOGS, logs)
    if "${" in inside.replace("${now:", ""):
        return False
    return Path(logs).resolve() in Path(inside).resolve().parents


def _is_below(name: str, option: str) -> bool:
    return name == option or name.startswith((f"{option}.", f"{option}@"))
