"""Read raw files from one folder only: links and lists of names that lead out of it are errors."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedcohort.dataset.files import list_folder
from fedcohort.errors import DataError
from fedcohort.host import disk

log = logging.getLogger("fedcohort")

IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp"}


def check_inside(source: Path, name: str | Path) -> Path:
    """Return the path of the file or folder `name` in the folder `source`.

    Raises `DataError` if that leads out of it, is not there, or is a pipe or a device.
    """
    try:
        path = source / name
        target, is_existing = path.resolve(), path.exists()
        str(path).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{source}: the name {str(name)!r} is no UTF-8 text: rename it") from error
    except (OSError, RuntimeError, ValueError) as error:  # a name that is too long, a link to itself, a zero byte
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{source}: {str(name)[:200]!r} can't be read: {reason}") from error
    if not target.is_relative_to(source.resolve()):
        raise DataError(f"{source}: {name} leads out of the folder, to {target}: it is not read")
    if not is_existing:
        raise DataError(f"{source} has no {name}")
    if not disk.is_file_or_folder(path):
        raise DataError(f"{source}: {name} is neither a file nor a folder: it is not read")
    return path


def check_file(source: Path, name: str | Path) -> Path:
    """Return the file `name` of the source. Raises `DataError` as `check_inside`, and for a folder."""
    path = check_inside(source, name)
    if path.is_dir():
        raise DataError(f"{source}: {name} is a folder, but a file is expected")
    return path


def find_first(source: Path, *names: str) -> Path:
    """Return the first of these names that the source has. Raises `DataError` if it has none."""
    first_name = next((name for name in names if (source / name).exists()), None)
    if first_name is None:
        raise DataError(f"{source} has no {names[0]}; it has {list_folder(source)}")
    return check_inside(source, first_name)


def folders_in(source: Path, folder: Path) -> list[Path]:
    """Return the folders in a folder, by name, without hidden ones."""
    return [check_inside(source, path.relative_to(source)) for path in _visible(folder) if path.is_dir()]


def images_in(source: Path, folder: Path) -> list[Path]:
    """Return the images in a folder, by name; a notice counts its other files.

    Raises `DataError` for links that lead out of the source, and where there is something, but no image.
    """
    paths = list(_visible(folder))
    images = [path for path in paths if path.suffix.lower() in IMAGE_SUFFIXES]
    if paths and not images:
        suffix_list = ", ".join(sorted(IMAGE_SUFFIXES))
        raise DataError(f"{folder} holds no images ({suffix_list}), but {paths[0].name}: convert or move its files")
    log_left_out(folder, [path.name for path in paths if path.suffix.lower() not in IMAGE_SUFFIXES])
    return [check_file(source, path.relative_to(source)) for path in images]


def log_left_out(folder: Path, names: Sequence[str]) -> None:
    """Log how many files or folders of `folder` are left out, with the first of their names."""
    if names:
        log.warning("%s: %d left out, the first is %r", folder, len(names), names[0])


def _visible(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if not path.name.startswith("."))
