"""The folder that raw data lie in: nothing outside of it is read, whatever a link or a list of names says."""

from collections.abc import Iterator
from pathlib import Path

from fedcohort.errors import DataError

IMAGES = {".png", ".jpg", ".jpeg", ".webp", ".bmp"}


def folder_of(path: str) -> Path:
    """The folder. Raises `DataError`, also for an archive, which is not opened."""
    source = Path(path).expanduser()
    if source.is_file():
        raise DataError(f"{path} is a file: unpack it first, archives are not opened here, and name the folder")
    if not source.is_dir():
        raise DataError(f"{path}: there is no such folder (from {Path.cwd()})")
    return source


def inside(source: Path, name: str | Path) -> Path:
    """The file or folder `name` of the source. Raises `DataError` where that leads out of it, or is not there."""
    path = source / name
    if not path.resolve().is_relative_to(source.resolve()):
        raise DataError(f"{source}: {name} leads out of the folder, to {path.resolve()}: it is not read")
    if not path.exists():
        raise DataError(f"{source} has no {name}")
    return path


def first_of(source: Path, *names: str) -> Path:
    """The first of these that the source has. Raises `DataError` where it has none."""
    found = next((name for name in names if (source / name).exists()), None)
    if found is None:
        raise DataError(f"{source} has no {names[0]}; it has {_list(source)}")
    return inside(source, found)


def folders_in(source: Path, folder: Path) -> list[Path]:
    """The folders in a folder, by name; hidden ones don't count."""
    return [inside(source, path.relative_to(source)) for path in _visible(folder) if path.is_dir()]


def images_in(source: Path, folder: Path) -> list[Path]:
    """The images in a folder, by name.

    Raises `DataError` for links that lead out of the source, and where there is something, but no image.
    """
    there = list(_visible(folder))
    found = [path for path in there if path.suffix.lower() in IMAGES]
    if there and not found:
        kinds = ", ".join(sorted(IMAGES))
        raise DataError(f"{folder} holds no images ({kinds}), but {there[0].name}: convert or move what it holds")
    return [inside(source, path.relative_to(source)) for path in found]


def _visible(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if not path.name.startswith("."))


def _list(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return ", ".join([*names[:12], *(["..."] if names[12:] else [])]) or "nothing"
