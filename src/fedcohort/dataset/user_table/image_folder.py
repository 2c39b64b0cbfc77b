"""Read a folder of images, `<class>/*` or `train/<class>/*` and `test/<class>/*`, as tables of images and classes."""

from collections import Counter
from pathlib import Path

import pyarrow as pa

from fedcohort.dataset.raw import imagefolder
from fedcohort.dataset.raw.source import IMAGES
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.host import memory

IMAGE, LABEL = "image", "label"
KIND = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def holds_classes(folder: Path) -> bool:
    """Return whether one of the folder's folders, or of its folder `train`, holds an image."""
    root = folder / "train" if (folder / "train").is_dir() else folder
    classes = [entry for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    return any(file.suffix.lower() in IMAGES for entry in classes for file in entry.iterdir())


def read_frames(folder: Path) -> dict[str, Frame]:
    """Return the tables by part (train, test, valid), with the columns `image` and `label`.

    Raises:
        DataError: if images differ in size or colour; it names the command that makes them equal.
    """
    by_part = imagefolder.list_pictures(folder)
    frames = {}
    check_sizes(folder, [picture.file for pictures in by_part.values() for picture in pictures])
    for part, pictures in by_part.items():
        total = sum(picture.file.stat().st_size for picture in pictures)
        memory.require_memory(total, f"dataset.path: {folder} with {len(pictures):,} images", _prepare(folder))
        images = [
            {"bytes": picture.file.read_bytes(), "path": str(picture.file.relative_to(folder))} for picture in pictures
        ]
        labels = [picture.values[0] for picture in pictures]
        frames[part] = Frame(str(folder / part), pa.table({IMAGE: pa.array(images, KIND), LABEL: labels}))
    return frames


def check_sizes(folder: Path, files: list[Path]) -> None:
    """Check that all images have one size and are all grey or all coloured, by their headers.

    Files that are not images are skipped here; the reader reports them. Raises `DataError`.
    """
    from PIL import Image  # noqa: PLC0415 - only where images are read

    kinds: Counter[tuple[int, int, str]] = Counter()
    first: dict[tuple[int, int, str], Path] = {}
    for file in files:
        try:
            with Image.open(file) as image:
                kind = (*image.size, "grey" if image.mode == "L" else "RGB")
        except Exception:
            continue
        kinds[kind] += 1
        first.setdefault(kind, file)
    if len(kinds) > 1:
        examples = ", ".join(
            f"{width} x {height} {colour} ({count:,}, as {first[width, height, colour].relative_to(folder)})"
            for (width, height, colour), count in kinds.most_common(3)
        )
        rest_note = f" and {len(kinds) - 3} more kinds" if len(kinds) > 3 else ""
        raise DataError(
            f"dataset.path: the images of {folder} are of {len(kinds)} sizes or colours: {examples}{rest_note}; "
            f"{_prepare(folder)}, and fedcohort data {folder}_64 prints how to train on them"
        )


def _prepare(folder: Path) -> str:
    return f"fedcohort prepare imagefolder {folder} {folder}_64 size=64 makes them 64 x 64 pixels in colour"
