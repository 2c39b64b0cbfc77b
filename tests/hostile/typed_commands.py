"""Cases of typed commands, which are children of one process that has imported their modules."""

import json
from pathlib import Path

from hostile import forked
from hostile.harness import Case

BASE = ("rounds=1", "clients=10", "cohort=2", "model=logreg", "logger=none", "callback=none")
FREE = ("configs", "train.py", "logs", "studies", "received", "src", "tests", "file", "plain", "sweeps", "out")


def train(command_line: str, text: str, *further: str) -> Case:
    sweep = command_line.startswith("-m")
    split = [command_line] if " = " in command_line or "'a b'" in command_line else command_line.split(" ")
    arguments = [*(["-m"] if sweep else []), *BASE, *split[int(sweep) :], *further]
    return Case(
        f"train.py {command_line!r}",
        lambda folder: forked.train(prepare(folder), arguments),
        (text,),
        check=find_damage,
    )


def verb(command_line: str, text: str) -> Case:
    arguments = command_line.split(" ") if command_line else []
    return Case(
        f"fedcohort {command_line}", lambda f: forked.fedcohort(prepare(f), arguments), (text,), check=find_damage
    )


def prepare(folder: Path) -> Path:
    """Give the folder a file, an empty folder and a small study."""
    (folder / "file").write_text("text\n")
    (folder / "plain").mkdir()
    write_study(folder, "x")
    return folder


def write_study(folder: Path, name: str, **changes: object) -> None:
    study: dict[str, object] = {
        "title": "t",
        "question": "q",
        "common": list(BASE[:4]),
        "baseline": "random",
        "methods": ["round_robin"],
        "settings": {"equal": {"overrides": ["heterogeneity=iid"]}},
        "seeds": [0],
    }
    (folder / "studies" / name).mkdir(parents=True)
    (folder / "studies" / name / "study.yaml").write_text(json.dumps({**study, **changes}))


def find_damage(folder: Path) -> str:
    """Say what was written that a refused command doesn't write."""
    unexpected = sorted(path.name for path in folder.iterdir() if path.name not in FREE)
    runs = sorted(path.name for path in folder.glob("logs/runs/*"))
    return f"it wrote {', '.join(unexpected + runs)}" if unexpected or runs else ""
