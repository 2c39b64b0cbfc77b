"""The origin of a result: commit, sources, data and versions of every start of a run."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from fedcohort.errors import DamagedFile
from fedcohort.host import processor
from fedcohort.host.disk import is_file
from fedcohort.record import digest, manifest
from fedcohort.record.sources import PACKAGE_FOLDER, digest_data, digest_sources, digest_user_code

CODE_PATHS = ("src", "configs", "train.py", "pyproject.toml", "constraints.txt")  # paths that decide results
RECORDED_PACKAGES = ("fedcohort", "torch", "lightning", "hydra-core", "mlflow", "numpy")
BIT_DECIDING_PACKAGES = ("torch", "lightning", "numpy")  # another version of these may change the bits of a result
START_RECORDS_FILE = "starts.jsonl"

StartRecord = Mapping[str, Any]


@cache
def package_versions() -> Mapping[str, str]:
    """Return the versions of Python and of the packages that results depend on, by name."""
    return {"python": platform.python_version(), **{k: metadata.version(k) for k in RECORDED_PACKAGES}}


@cache
def current_commit() -> tuple[str, bool]:
    """Return the commit of the running code and whether it was changed since; ("unknown", True) outside of git.

    New files of the code count as changes; results that the repository holds do not. The answer is cached because the
    modules that a process has imported do not change.
    """
    try:
        head_commit = _run_git("rev-parse", "HEAD")
        return head_commit, bool(_run_git("status", "--porcelain", "--", *(f":(top){path}" for path in CODE_PATHS)))
    except (OSError, subprocess.SubprocessError):
        return "unknown", True


def _run_git(*git_arguments: str) -> str:
    # Without optional locks: git status would lock the index, and a commit of the user's at that moment would fail.
    git_command = ["git", "--no-optional-locks", "-C", str(PACKAGE_FOLDER), *git_arguments]
    return subprocess.run(git_command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


def describe_start(
    config: Mapping[str, Any], options_needing_force: Mapping[str, Any], data_checksum: str
) -> dict[str, Any]:
    """Return the versions, code, data and options that determine the results of `config` to the bit.

    Args:
        config: the composed config.
        options_needing_force: the options whose change needs `resume=force` (`RunIdentity.SAME_RUN_WITH_FORCE`), with
            the numbers of processes, by dotted name.
        data_checksum: checksum of the loaded data.
    """
    head_commit, has_changes = current_commit()
    start = {
        "commit": head_commit,
        "dirty": has_changes,
        "sources": digest_sources(config),
        "versions": package_versions(),
    }
    file_digests = digest_data(config) | digest_user_code(config)
    start |= {"processor": processor.name_processor()}
    return start | {"options": dict(options_needing_force), "files": file_digests, "data": data_checksum}


def list_start_differences(earlier_start: StartRecord, new_start: StartRecord) -> list[str]:
    """Describe the differences between two starts of a run that may change its results; [] without any.

    Args:
        earlier_start: the result of `describe_start` for the earlier start.
        new_start: the result for the new start.
    """
    differences = []
    if earlier_start["sources"] != new_start["sources"]:
        differences.append(f"other code of fedcohort ({describe_code(earlier_start)}, now {describe_code(new_start)})")
    for name in BIT_DECIDING_PACKAGES:
        if (old_value := earlier_start["versions"].get(name)) != (new_value := new_start["versions"].get(name)):
            differences.append(f"{name} {new_value} (was {old_value})")
    for option_name, option_value in new_start["options"].items():
        if (old_value := earlier_start["options"].get(option_name)) != option_value:
            differences.append(f"{option_name}={option_value} (was {old_value})")
    for option_name, option_value in new_start["files"].items():
        if earlier_start.get("files", {}).get(option_name, option_value) != option_value:
            differences.append(f"the files that {option_name} names have changed")
    if (old_value := earlier_start.get("data", new_start["data"])) != new_start["data"]:  # older starts have none
        differences.append(f"the dataset has other data than before (checksum {new_start['data']}, was {old_value})")
    return differences


def describe_code(start: StartRecord) -> str:
    """Return the code of the start `start` as text, such as `0123456789+, sources 89abcdef`; a plus marks changes."""
    return f"commit {start['commit'][:10]}{'+' if start['dirty'] else ''}, sources {start['sources']}"


def append_start_record(run_path: Path, start_record: StartRecord) -> None:
    """Append a start of the run to `starts.jsonl` in its folder, which is never rewritten.

    Args:
        run_path: the run folder.
        start_record: the result of `describe_start`, with `round` (rounds completed before), `resume` (the option), and
            `forced`: the differences to the start that wrote the checkpoint; None without `resume=force`.
    """
    start_line = digest.append_digest(json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **start_record})) + "\n"
    path = run_path / START_RECORDS_FILE
    is_last_line_cut = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with path.open("ab", buffering=0) as starts_file:
        starts_file.write((b"\n" if is_last_line_cut else b"") + start_line.encode())
        os.fsync(starts_file.fileno())


def read_start_records(run_path: Path) -> list[StartRecord]:
    """Read every start of the run in `run_path`, oldest first, without lines that a kill or a full disk cut.

    Raises `DamagedFile` for a complete line whose content has changed.
    """
    starts_path = run_path / START_RECORDS_FILE
    manifest.check_file(starts_path)
    start_records = []
    for line_bytes in starts_path.read_bytes().split(b"\n") if is_file(starts_path) else []:
        try:
            line_text = line_bytes.decode()
            start_records.append(json.loads(line_text))
            is_line_undamaged = digest.check_digest(line_text)[1] is not False
        except ValueError:
            is_line_undamaged = not line_bytes.endswith(b"}")  # then it was cut
        if not is_line_undamaged:
            raise DamagedFile(
                f"{starts_path} is damaged: the content of a line has changed. Restore it from a copy, or remove it"
            )
    return start_records


def list_forced_starts(start_records: Sequence[StartRecord]) -> list[str]:
    """Return a line for each of `start_records` that resumed a checkpoint with `resume=force`; [] without any."""
    forced_starts = [(start["round"], start["forced"]) for start in start_records if start["forced"] is not None]
    return [
        f"after round {n_rounds_done}: {'; '.join(differences) or 'no known difference'}"
        for n_rounds_done, differences in forced_starts
    ]


def list_commits(start_records: Sequence[StartRecord]) -> list[str]:
    """Return the distinct commits of `start_records`, 8 digits each; a plus marks a commit with changed files."""
    return list(dict.fromkeys(start["commit"][:8] + ("+" if start["dirty"] else "") for start in start_records))
