"""Locks between processes."""

from pathlib import Path
from typing import IO, Any

import pytest

from fedcohort.host.lock import is_locked, try_to_lock
from optional_values import not_none


def test_a_lock_in_a_read_only_folder_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock_path, open_file = tmp_path / "run.lock", Path.open
    held_lock = not_none(try_to_lock(lock_path))

    def open_for_reading(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> IO[Any]:
        if "+" in mode:
            raise PermissionError(13, "Permission denied", str(path))
        return open_file(path, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", open_for_reading)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert is_locked(lock_path)
    held_lock.close()
    assert not is_locked(lock_path)
