"""The manifest of a folder: the size and the digest of each file in it that must stay what was written.

    manifest.json   {"format": 1, "files": {"clients.parquet": [{"bytes": 5120, "blake2b": "0f..."}]}, "digest": "..."}

A file has two entries while it is replaced, null for no file: the manifest first gets the new content beside the old
one, then the file is replaced, then the old entry goes. So a kill at any point leaves files that the manifest knows. A
folder of an older version has no manifest, nor has a run that is at work or was killed; their files are read with their
own checks alone. Modification times don't count: a study's manifest survives git.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedcohort.errors import DamagedFile
from fedcohort.host.disk import is_file
from fedcohort.record import digest
from fedcohort.record.folder import write_atomically

NAME, FORMAT = "manifest.json", 1
CURE = "Restore it from a copy; if you changed it on purpose, remove {0}"
Entry = dict[str, Any] | None
Entries = Mapping[str, list[Entry]]


def seal(folder: Path, names: Iterable[str]) -> None:
    """Write the manifest of the files of `names` that are in `folder`."""
    _write(folder, {name: [_entry_of(folder / name)] for name in names if is_file(folder / name)})


def withdraw(folder: Path) -> None:
    """Remove the manifest: a process is about to change the files."""
    (folder / NAME).unlink(missing_ok=True)


def replace(folder: Path, contents: Mapping[str, bytes | memoryview], *, create: bool = False) -> None:
    """Write files, each whole or not at all, and what the manifest says of them; create: where there is none, too."""
    known = _read(folder)
    if known is None and not create:
        for name, content in contents.items():
            write_atomically(folder / name, content)
        return
    fresh = {name: {"bytes": len(content), "blake2b": digest.of(content)} for name, content in contents.items()}
    before = {name: _entry_of(folder / name) if is_file(folder / name) else None for name in contents}
    rest = known or {}
    _write(folder, {**rest, **{name: [before[name], fresh[name]] for name in contents}})
    for name, content in contents.items():
        write_atomically(folder / name, content)
    _write(folder, {**rest, **{name: [fresh[name]] for name in contents}})


def check(path: Path) -> None:
    """Raise `DamagedFile` where the manifest in the file's folder has the file, and not with this content."""
    known = _read(path.parent)
    if known is not None and path.name in known:
        _compare(path, known[path.name])


def check_all(folder: Path) -> None:
    """Check every file that the manifest in `folder` has. Raises `DamagedFile`."""
    for name, entries in (_read(folder) or {}).items():
        _compare(folder / name, entries)


def _compare(path: Path, entries: list[Entry]) -> None:
    cure, there = CURE.format(path.with_name(NAME)), is_file(path)
    if not there and None not in entries:
        raise DamagedFile(f"{path} is missing, and {NAME} beside it has it. {cure}")
    if there and _entry_of(path) not in entries:
        raise DamagedFile(f"{path} is damaged: its content is not the one that {NAME} beside it has. {cure}")


def _entry_of(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "blake2b": digest.of_file(path)}


def _write(folder: Path, files: Entries) -> None:
    text = json.dumps({"format": FORMAT, "files": dict(sorted(files.items()))}, indent=1)
    write_atomically(folder / NAME, digest.seal(text) + "\n")


def _read(folder: Path) -> Entries | None:
    """Read the entries by file; None where there is no manifest."""
    path = folder / NAME
    if not is_file(path):
        return None
    try:
        text = path.read_text()
        found = json.loads(text)
        sound, number = digest.unseal(text)[1], found["format"]
        files = {name: list(entries) for name, entries in found["files"].items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedFile(_damaged(path)) from error
    if number != FORMAT:
        raise DamagedFile(f"{path} has the format {number}, this version of fedcohort reads {FORMAT}: update fedcohort")
    if not sound:
        raise DamagedFile(_damaged(path))
    return files


def _damaged(path: Path) -> str:
    return f"{path} is damaged. Restore it from a copy; if the files beside it are as you want them, remove it"
