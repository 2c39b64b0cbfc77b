"""Nothing outside of the source is read."""

from pathlib import Path

import pytest

from fedcohort.dataset.files import check_data_folder
from fedcohort.dataset.raw.source import find_images, find_path, list_subfolders, require_path
from fedcohort.errors import DataError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source_folder = tmp_path / "source"
    (source_folder / "cats").mkdir(parents=True)
    for name in ("b.PNG", "a.jpg", "notes.txt", ".hidden.png"):
        (source_folder / "cats" / name).write_bytes(b"x")
    (tmp_path / "secret.png").write_bytes(b"s")
    return source_folder


def test_images_and_subfolders_are_listed_in_the_order_of_their_names(source: Path) -> None:
    assert [path.name for path in find_images(source, source / "cats")] == ["a.jpg", "b.PNG"]
    assert [path.name for path in list_subfolders(source, source)] == ["cats"]
    assert find_path(source, "dogs", "cats").name == "cats"


def test_paths_and_links_outside_of_the_source_folder_are_rejected(source: Path, tmp_path: Path) -> None:
    for name in ("../secret.png", str(tmp_path / "secret.png"), "cats/../../secret.png"):
        with pytest.raises(DataError, match="leads out of the folder"):
            require_path(source, name)
    (source / "cats" / "c.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(DataError, match=r"cats/c.png leads out of the folder, to .*secret.png: replace the link"):
        find_images(source, source / "cats")
    (source / "dogs").symlink_to(tmp_path)
    with pytest.raises(DataError, match="dogs leads out of the folder"):
        list_subfolders(source, source)


def test_links_inside_the_source_folder_are_followed(source: Path) -> None:
    (source / "cats" / "c.png").symlink_to(source / "cats" / "a.jpg")
    assert len(find_images(source, source / "cats")) == 3


def test_a_missing_source_path_is_named_with_the_existing_ones(source: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"SRC=.*nowhere: there is no such file or folder"):
        check_data_folder(str(tmp_path / "nowhere"), "SRC")
    with pytest.raises(DataError, match=r"SRC=.*secret.png: this is no folder \(archives must be unpacked\)"):
        check_data_folder(str(tmp_path / "secret.png"), "SRC")
    with pytest.raises(DataError, match="has no dogs; it has cats"):
        find_path(source, "dogs")
    with pytest.raises(DataError, match="has no dogs"):
        require_path(source, "dogs")
