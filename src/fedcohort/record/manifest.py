"""The manifest of a folder: size and digest of each file whose content must not change.

    manifest.json   {"format": 1, "files": {"clients.parquet": [{"bytes": 5120, "blake2b": "0f..."}]}, "digest": "..."}

While a file is replaced it has two entries, null for no file. The manifest first gets an entry for the new content,
then the file is replaced, then the old entry is removed. After a kill at any point the files agree with the manifest.

Folders of older versions have no manifest, and neither have runs that are running or were killed. Their files are only
checked by their readers. Modification times are not compared, so that a study's manifest survives git.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedcohort.errors import DamagedFile
from fedcohort.host.disk import is_file
from fedcohort.record import digest
from fedcohort.record.folder import write_atomically

MANIFEST_FILE, MANIFEST_FORMAT = "manifest.json", 1
DAMAGED_FILE_ADVICE = "Restore it from a copy; if you changed it on purpose, remove {0}"
FileEntry = dict[str, Any] | None
EntriesByFile = Mapping[str, list[FileEntry]]


def write_manifest(folder: Path, file_names: Iterable[str]) -> None:
    """Write the manifest of those files in `file_names` that exist in `folder`."""
    _write_manifest(folder, {k: [_describe_file_entry(folder / k)] for k in file_names if is_file(folder / k)})


def remove_manifest(folder: Path) -> None:
    """Remove the manifest in `folder`, before a process changes the files there."""
    (folder / MANIFEST_FILE).unlink(missing_ok=True)


def replace_files(
    folder: Path, content_by_name: Mapping[str, bytes | memoryview], *, create_manifest: bool = False
) -> None:
    """Write files of a folder atomically, and update the folder's manifest.

    Args:
        folder: the folder.
        content_by_name: new content of each file, by name.
        create_manifest: whether to write a manifest if there is none.
    """
    entries = _read_manifest(folder)
    has_manifest, entries = entries is not None or create_manifest, entries or {}
    new_entries = {
        name: {"bytes": len(file_bytes), "blake2b": digest.digest_of_bytes(file_bytes)}
        for name, file_bytes in content_by_name.items()
    }
    if has_manifest:
        previous_entries = {
            name: _describe_file_entry(folder / name) if is_file(folder / name) else None for name in content_by_name
        }
        _write_manifest(
            folder, {**entries, **{name: [previous_entries[name], new_entries[name]] for name in content_by_name}}
        )
    for name, file_content in content_by_name.items():
        write_atomically(folder / name, file_content)
    if has_manifest:
        _write_manifest(folder, {**entries, **{name: [new_entries[name]] for name in content_by_name}})


def check_file(file_path: Path) -> None:
    """Raise `DamagedFile` if the file `file_path`, listed in its folder's manifest, is missing or differs from it."""
    entries = _read_manifest(file_path.parent)
    if entries is not None and file_path.name in entries:
        _check_file_entries(file_path, entries[file_path.name])


def check_all_files(folder: Path) -> None:
    """Raise `DamagedFile` if a file in the manifest of `folder` is missing or has changed."""
    for name, entries in (_read_manifest(folder) or {}).items():
        _check_file_entries(folder / name, entries)


def _check_file_entries(path: Path, entries: list[FileEntry]) -> None:
    damage_advice, file_exists = DAMAGED_FILE_ADVICE.format(path.with_name(MANIFEST_FILE)), is_file(path)
    if not file_exists and None not in entries:
        raise DamagedFile(f"{path} is missing, although {MANIFEST_FILE} in its folder lists it. {damage_advice}")
    if file_exists and _describe_file_entry(path) not in entries:
        raise DamagedFile(f"{path} is damaged: its content differs from {MANIFEST_FILE} in its folder. {damage_advice}")


def _describe_file_entry(file_path: Path) -> dict[str, Any]:
    return {"bytes": file_path.stat().st_size, "blake2b": digest.digest_of_file(file_path)}


def _write_manifest(folder: Path, entries_by_file: EntriesByFile) -> None:
    manifest_text = json.dumps({"format": MANIFEST_FORMAT, "files": dict(sorted(entries_by_file.items()))}, indent=1)
    write_atomically(folder / MANIFEST_FILE, digest.append_digest(manifest_text) + "\n")


def _read_manifest(folder: Path) -> EntriesByFile | None:
    """Read the folder's manifest: the entries of each file by name, or None if there is no manifest."""
    path = folder / MANIFEST_FILE
    advice_text = "Restore it from a copy; if the other files of the folder are correct, remove it"
    manifest_content = digest.read_json(path, advice_text)
    if manifest_content is None:
        return None
    if (version := manifest_content.get("format")) != MANIFEST_FORMAT:
        raise DamagedFile(f"{path} has format {version}, but this fedcohort reads {MANIFEST_FORMAT}: update fedcohort")
    try:
        return {name: list(entries) for name, entries in manifest_content["files"].items()}
    except (TypeError, KeyError, AttributeError) as error:
        raise DamagedFile(f"{path} is damaged. {advice_text}") from error
