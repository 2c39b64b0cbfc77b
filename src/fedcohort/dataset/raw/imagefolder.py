"""Convert a folder of images with a folder for each class: SRC/train/<class>/*, SRC/test/<class>/*; or SRC/<class>/*.

Without folders train and test all images are the training part: dataset=folder cuts a test part of it
(dataset.test_share=0.2). Columns: `image`, `label` (the class's name). `valid` or `val` becomes a part, too, which
dataset=folder takes for the server's validation data (dataset.valid=none does not read it).
"""

from pathlib import Path

from fedcohort.dataset.raw.encoded import Picture, pieces_of
from fedcohort.dataset.raw.pieces import Piece
from fedcohort.dataset.raw.source import folders_in, images_in, note_left_out
from fedcohort.errors import DataError

PARTS = {"train": "train", "test": "test", "valid": "valid", "val": "valid", "validation": "valid"}


def plan(source: Path, size: int | None) -> list[Piece]:
    """Plan the tables. Raises `DataError` if there are no classes with images."""
    pictures = [picture for part in list_pictures(source).values() for picture in part]
    return pieces_of(pictures, ("label",), source, size)


def list_pictures(source: Path) -> dict[str, list[Picture]]:
    """Return the images of each part with their classes. Raises `DataError` if a part has no classes with images."""
    folders = folders_in(source, source)
    parts = [folder for folder in folders if folder.name in PARTS]
    roots = [("train", source)]
    if (source / "train").is_dir():
        roots = [(PARTS[folder.name], folder) for folder in parts]
        note_left_out(source, [folder.name for folder in folders if folder not in parts])
    if len({part for part, _ in roots}) < len(roots):
        raise DataError(f"{source} has several folders of validation data, such as {roots[-1][1].name}: keep one")
    pictures = {}
    for part, root in roots:
        pictures[part] = [
            Picture(part, file, (folder.name,))
            for folder in folders_in(source, root)
            for file in images_in(source, folder)
        ]
        if not pictures[part]:
            raise DataError(f"{root} has no folders of images: <class>/*.png (.jpg, .jpeg, .webp, .bmp) is expected")
    return pictures
