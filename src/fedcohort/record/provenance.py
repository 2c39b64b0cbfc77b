"""Where a result comes from: commit, sources and versions of every start of a run.

Every figure of a table is traced through these.
"""

import ast
import hashlib
import importlib.util
import json
import os
import platform
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from fedcohort.errors import DamagedFile
from fedcohort.host.disk import is_file
from fedcohort.record import digest, manifest

PACKAGE = Path(__file__).parents[1]
CODE = ("src", "configs", "train.py", "pyproject.toml", "constraints.txt")  # what decides a result, from the top
PACKAGES = ("fedcohort", "torch", "lightning", "hydra-core", "mlflow", "numpy")
NOT_RUN = (
    "command",
    "study",
    "jobs",
    "report",
    "tracking",
    "console",
    "results",
    "observe",
)  # packages that decide no bits
BITS = ("torch", "lightning", "numpy")  # another version of these may give other bits
STARTS = "starts.jsonl"
TARGET = "_target_"  # Hydra's key for the class of a component
FILES = ("path", "weights")  # options that name a file, or a folder of files, that results depend on
ENDS = 2**24  # bytes at either end of a file that are read of it

Start = Mapping[str, Any]


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of Python and of the packages that results depend on, by name."""
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}}


@cache
def commit() -> tuple[str, bool]:
    """The commit of the code that runs, and whether it was changed since; ("unknown", True) outside of git.

    Asked once: what a process has imported stays what it is. A new file of the code counts, committed or not; the
    tables that the papers' scripts write don't.
    """
    here = str(PACKAGE)
    try:
        head = _git(here, "rev-parse", "HEAD")
        return head, bool(_git(here, "status", "--porcelain", "--", *(f":(top){path}" for path in CODE)))
    except (OSError, subprocess.SubprocessError):
        return "unknown", True


def sources(config: Mapping[str, Any], top: Path | None = None) -> str:
    """Twelve hex digits over the Python files of the package that `config` runs, their names and their text.

    Words that it didn't choose don't count: who adds a method goes on with yesterday's runs. Nor does what is
    shown of a run, or typed beside it. top: the package's folder, None for this one, whose files are read once: what
    a process has imported stays what it is.
    """
    chosen = frozenset(targets({k: node for k, node in config.items() if k not in ("callback", "logger")}))
    return _imported_sources(chosen) if top is None else _sources(chosen, read_files(top))


@cache
def _imported_sources(targets: frozenset[str]) -> str:
    return _sources(targets, _imported_files())


@cache
def _imported_files() -> Mapping[str, bytes]:
    return read_files(PACKAGE)


def read_files(top: Path) -> Mapping[str, bytes]:
    """Read the Python files of the package in `top`, by their names in it, as `selector/random.py`."""
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in top.rglob("*.py")}


def _sources(targets: frozenset[str], files: Mapping[str, bytes]) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for name in sorted(run_by(targets, files), key=lambda name: name.split("/")):
        for part in (name.encode(), files[name]):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def run_by(targets: Collection[str], files: Mapping[str, bytes]) -> set[str]:
    """Return the `files` that a run of `targets` may execute.

    Of a config group's folder these are the chosen options, `base`, and what they import from the group's folders.
    """
    folders = {name: name.rpartition("/")[0] for name in files}
    options = {"/".join(name.split(".")[1:-1]) + ".py" for name in targets} & set(files)
    groups = {folders[name] for name in options} - {""}
    executed = {name for name in files if folders[name] not in groups and name.split("/")[0] not in NOT_RUN}
    pending = options | {f"{group}/{name}.py" for group in groups for name in ("base", "__init__")} & set(files)
    while pending:
        executed |= pending
        imported = set().union(*(_list_imports(files[name]) for name in pending)) & set(files)
        pending = {name for name in imported if folders[name] in groups} - executed
    return executed


@cache
def _list_imports(source: bytes) -> frozenset[str]:
    """Return the files of the package that a module's import statements may name, as `selector/base.py`."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset("/".join(name.split(".")[1:]) + ".py" for name in names)


def targets(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield every `_target_` in `config`, at any depth."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from targets(value)
        elif key == TARGET:
            yield str(value)


def this(config: Mapping[str, Any], options: Mapping[str, Any], data: str) -> dict[str, Any]:
    """What decides the bits of a process beside `config`.

    options: those of `Identity.FORCED`, by dotted name. data: the checksum of the data as they were loaded.
    """
    head, dirty = commit()
    start = {"commit": head, "dirty": dirty, "sources": sources(config), "versions": versions()}
    return start | {"options": dict(options), "files": dict(files(config)) | dict(user_code(config)), "data": data}


def files(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield what the files hold that `config` names, as twelve hex digits, by dotted option; none that isn't there.

    Of a large file its size and both of its ends are read; of a folder, the files in it by name. Data of the hub are in
    no file that is named, and the middle of a large file isn't read: the checksum of what was loaded knows both.
    """
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from files(value, f"{prefix}{key}.")
        elif key in FILES and isinstance(value, str) and (path := Path(os.path.expanduser(value))).exists():
            yield f"{prefix}{key}", _digest(path)


def user_code(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield a digest of each file with a user's own component, by dotted option: `selector._target_`, `model.path`.

    What such a file imports is not covered. Callbacks and loggers do not change results.
    """
    for key, value in config.items():
        if isinstance(value, Mapping) and (prefix or key not in ("callback", "logger")):
            yield from user_code(value, f"{prefix}{key}.")
        foreign = key == TARGET and not str(value).startswith("fedcohort.")
        if foreign or (key == "path" and str(config.get(TARGET)).endswith(".module.Module")):
            spec = None
            with suppress(ValueError):  # of a notebook, which is no file
                spec = importlib.util.find_spec(str(value).rpartition(".")[0])
            if spec and spec.origin and Path(spec.origin).is_file():
                yield f"{prefix}{key}", _digest(Path(spec.origin))


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for each in sorted(path.iterdir()) if path.is_dir() else (path,):
        if each.is_file():
            size = each.stat().st_size
            with each.open("rb") as file:
                start = file.read(ENDS)
                file.seek(max(0, size - ENDS))
                digest.update(f"{each.name}/{size}/".encode() + start + file.read(ENDS))
    return digest.hexdigest()


def differences(then: Start, now: Start) -> list[str]:
    """What is other `now` than it was `then` and may change bits, in words; [] where nothing is."""
    found = []
    if then["sources"] != now["sources"]:
        found.append(f"other code of fedcohort ({describe(then)}, now {describe(now)})")
    for name in BITS:
        if (was := then["versions"].get(name)) != (is_now := now["versions"].get(name)):
            found.append(f"{name} {is_now} (was {was})")
    for option, value in now["options"].items():
        if (was := then["options"].get(option)) != value:
            found.append(f"{option}={value} (was {was})")
    for option, value in now["files"].items():
        if then.get("files", {}).get(option, value) != value:
            found.append(f"the content behind {option} has changed")
    if (was := then.get("data", now["data"])) != now["data"]:  # older starts have none
        found.append(f"dataset has other data than it had (checksum {now['data']}, was {was})")
    return found


def describe(start: Start) -> str:
    """Name the code of a start as `0123456789+, sources 89abcdef`.

    The plus says that the commit had been changed.
    """
    return f"commit {start['commit'][:10]}{'+' if start['dirty'] else ''}, sources {start['sources']}"


def note_start(folder: Path, start: Start) -> None:
    """Append `start` to the folder's starts; none is ever rewritten.

    start: what `this` says, with `round` (rounds done before), `resume` as it was typed, and `forced`: what was other
    than before, None where the start was not forced.
    """
    line = digest.seal(json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **start})) + "\n"
    path = folder / STARTS
    torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with path.open("ab", buffering=0) as file:
        file.write((b"\n" if torn else b"") + line.encode())
        os.fsync(file.fileno())


def starts(folder: Path) -> list[Start]:
    """Read every start of the run in `folder`, oldest first; a line that a kill or a full disk tore is none.

    Raises `DamagedFile` for a whole line that is not what was written.
    """
    path = folder / STARTS
    manifest.check(path)
    found = []
    for line in path.read_bytes().split(b"\n") if is_file(path) else []:
        try:
            text = line.decode()
            found.append(json.loads(text))
            sound = digest.unseal(text)[1] is not False
        except ValueError:
            sound = not line.endswith(b"}")  # then it was torn
        if not sound:
            raise DamagedFile(
                f"{path} is damaged: a line of it is not what was written. Restore it from a copy, or remove it"
            )
    return found


def list_forced(found: Sequence[Start]) -> list[str]:
    """Say in words which starts went on by `resume=force`; [] for a run that has the bits of an uninterrupted one."""
    return [
        f"after round {start['round']}: {'; '.join(start['forced']) or 'nothing known was other'}"
        for start in found
        if start["forced"] is not None
    ]


def commits(found: Sequence[Start]) -> list[str]:
    """The different commits of the starts, in their order, shortened; a plus where the code had been changed."""
    return list(dict.fromkeys(start["commit"][:8] + ("+" if start["dirty"] else "") for start in found))


def _git(where: str, *words: str) -> str:
    done = subprocess.run(["git", "-C", where, *words], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
