"""Read raw files from one folder only: links and lists of names that lead out of it are errors."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedcohort.dataset.files import list_contents
from fedcohort.errors import DataError
from fedcohort.host import disk

log = logging.getLogger("fedcohort")

IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp"}


def require_path(raw_dir: Path, name: str | Path) -> Path:
    """Return the path of the file or folder `name` in the folder `raw_dir`.

    Raises `DataError` if the path leads out of the folder, does not exist, can't be read, or is a pipe or a device.
    """
    try:
        path = raw_dir / name
        resolved_path, path_exists = path.resolve(), path.exists()
        str(path).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{raw_dir}: the name {str(name)!r} is no UTF-8 text: rename it") from error
    except (OSError, RuntimeError, ValueError) as error:  # a name that is too long, a link to itself, a zero byte
        os_error_text = getattr(error, "strerror", None) or error
        raise DataError(f"{raw_dir}: {str(name)[:200]!r} can't be read ({os_error_text}): remove it") from error
    if not resolved_path.is_relative_to(raw_dir.resolve()):
        raise DataError(
            f"{raw_dir}: {name} leads out of the folder, to {resolved_path}: replace the link by its file, or remove it"
        )
    if not path_exists:
        raise DataError(f"{raw_dir} has no {name}: add it")
    if not disk.is_file_or_folder(path):
        raise DataError(f"{raw_dir}: {name} is neither a file nor a folder: it is not read, remove it")
    return path


def check_file(raw_dir: Path, name: str | Path) -> Path:
    """Return the path of the file `name` in the folder `raw_dir`. Raises `DataError` for invalid paths and folders."""
    path = require_path(raw_dir, name)
    if path.is_dir():
        raise DataError(f"{raw_dir}: {name} is a folder, but a file is expected: rename it")
    return path


def find_path(raw_dir: Path, *candidate_names: str) -> Path:
    """Return the path of the first of `candidate_names` that exists in `raw_dir`. Raises `DataError` if none exists."""
    existing_file_name = next((name for name in candidate_names if (raw_dir / name).exists()), None)
    if existing_file_name is None:
        raise DataError(
            f"{raw_dir} has no {candidate_names[0]}; it has {list_contents(raw_dir)}: choose another folder"
        )
    return require_path(raw_dir, existing_file_name)


def list_subfolders(raw_dir: Path, folder: Path) -> list[Path]:
    """Return the subfolders of `folder`, sorted by name, without hidden ones.

    Raises `DataError` if one is a link that leads out of the folder `raw_dir`.
    """
    return [require_path(raw_dir, path.relative_to(raw_dir)) for path in _list_visible_paths(folder) if path.is_dir()]


def find_images(raw_dir: Path, folder: Path) -> list[Path]:
    """Return the image files in `folder`, sorted by name, and log the number of its other files.

    Raises `DataError` if a link leads out of the folder `raw_dir`, or if `folder` has files, but no image.
    """
    paths = list(_list_visible_paths(folder))
    image_paths = [path for path in paths if path.suffix.lower() in IMAGE_SUFFIXES]
    if paths and not image_paths:
        suffixes_text = ", ".join(sorted(IMAGE_SUFFIXES))
        raise DataError(f"{folder} holds no images ({suffixes_text}), but {paths[0].name}: convert or move its files")
    log_unused_files(folder, [path.name for path in paths if path.suffix.lower() not in IMAGE_SUFFIXES])
    return [check_file(raw_dir, path.relative_to(raw_dir)) for path in image_paths]


def log_unused_files(folder: Path, file_names: Sequence[str]) -> None:
    """Log the number of files or folders in `folder` that are left out, and the first of their names."""
    if file_names:
        log.warning("%s: %d files or folders are left out, the first is %r", folder, len(file_names), file_names[0])


def _list_visible_paths(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if not path.name.startswith("."))
