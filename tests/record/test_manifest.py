"""The manifest names a file that is not what was written; a kill at any point leaves a sound folder sound."""

import os
from pathlib import Path

import pytest

from fedcohort.errors import DamagedFile
from fedcohort.record import digest, manifest
from process_kills import kill_at_call

OLD_FILES, NEW_FILES = {"a": b"old a", "b": b"old b"}, {"a": b"new a", "b": b"new b"}


def test_a_changed_file_is_reported(tmp_path: Path) -> None:
    for name, content in OLD_FILES.items():
        (tmp_path / name).write_bytes(content)
    manifest.write_manifest(tmp_path, [*OLD_FILES, "absent"])
    manifest.check_all_files(tmp_path)
    (tmp_path / "a").write_bytes(b"oLd a")
    manifest.check_file(tmp_path / "b")
    with pytest.raises(DamagedFile, match=r"/a is damaged: its content differs from manifest\.json"):
        manifest.check_file(tmp_path / "a")
    (tmp_path / "a").unlink()
    with pytest.raises(DamagedFile, match=r"/a is missing, although manifest\.json in its folder lists it"):
        manifest.check_all_files(tmp_path)
    manifest.remove_manifest(tmp_path)
    manifest.check_all_files(tmp_path)


def test_a_damaged_or_unknown_manifest_is_reported(tmp_path: Path) -> None:
    manifest.replace_files(tmp_path, OLD_FILES, create_manifest=True)
    path = tmp_path / manifest.MANIFEST_FILE
    content = path.read_text()
    path.write_text(content.replace('"bytes": 5', '"bytes": 6', 1))
    with pytest.raises(DamagedFile, match=r"manifest\.json is damaged"):
        manifest.check_all_files(tmp_path)
    path.write_text(digest.append_digest('{"format": 9, "files": {}}'))
    with pytest.raises(DamagedFile, match=r"manifest\.json has format 9, but this fedcohort reads 1"):
        manifest.check_all_files(tmp_path)
    path.write_bytes(content.replace("\n", "\r\n").encode())  # as git may check it out
    manifest.check_all_files(tmp_path)


def test_a_folder_without_a_manifest_gets_none_by_default(tmp_path: Path) -> None:
    manifest.replace_files(tmp_path, OLD_FILES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("call", [1, 2, 3, 4])
@pytest.mark.parametrize("first", [True, False], ids=["the first write", "a later write"])
def test_a_kill_at_any_point_leaves_sound_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int, moment: str, first: bool
) -> None:
    """Calls: the manifest with both contents, the two files, the manifest with the new contents."""
    if not first:
        manifest.replace_files(tmp_path, OLD_FILES, create_manifest=True)
    kill_at_call(
        monkeypatch,
        os,
        "replace",
        call,
        moment,
        lambda: manifest.replace_files(tmp_path, NEW_FILES, create_manifest=True),
    )
    manifest.check_all_files(tmp_path)
    manifest.replace_files(tmp_path, NEW_FILES, create_manifest=True)
    manifest.check_all_files(tmp_path)
    (tmp_path / "a").write_bytes(OLD_FILES["a"])
    with pytest.raises(DamagedFile):
        manifest.check_all_files(tmp_path)


def test_a_digest_with_a_damaged_digit_is_rejected(tmp_path: Path) -> None:
    """A flipped bit can make a hexadecimal digit of the manifest's own digest another character."""
    (tmp_path / "weights.pt").write_bytes(b"weights")
    manifest.write_manifest(tmp_path, ["weights.pt"])
    manifest_path = tmp_path / manifest.MANIFEST_FILE
    manifest_text = manifest_path.read_text()
    position = manifest_text.index('"digest": "') + 15
    manifest_path.write_text(f"{manifest_text[:position]}<{manifest_text[position + 1 :]}")
    with pytest.raises(DamagedFile, match=r"manifest\.json is damaged"):
        manifest.check_all_files(tmp_path)
