"""A folder of images, a folder for each class: SRC/train/<class>/*, SRC/test/<class>/*; or SRC/<class>/* alone.

Without folders train and test all images are the training part: dataset=folder cuts a test part of it
(dataset.test_share=0.2). Columns: `image`, `label` (the class's name). `valid` or `val` is a part, too, which
dataset=folder takes for the server's validation data (dataset.valid=none leaves it alone).
"""

from pathlib import Path

from fedcohort.dataset.raw.encoded import Picture, pieces_of
from fedcohort.dataset.raw.pieces import Piece
from fedcohort.dataset.raw.source import folders_in, images_in, note_left_out
from fedcohort.errors import DataError

PARTS = {"train": "train", "test": "test", "valid": "valid", "val": "valid", "validation": "valid"}


def plan(source: Path, size: int | None) -> list[Piece]:
    """Plan the tables. Raises `DataError` where there are no classes with images."""
    folders = folders_in(source, source)
    parts = [folder for folder in folders if folder.name in PARTS]
    named = [("train", source)]
    if (source / "train").is_dir():
        named = [(PARTS[folder.name], folder) for folder in parts]
        note_left_out(source, [folder.name for folder in folders if folder not in parts])
    if len({part for part, _ in named}) < len(named):
        raise DataError(f"{source} has several folders of validation data, such as {named[-1][1].name}: keep one")
    pictures = [
        Picture(part, file, (folder.name,))
        for part, root in named
        for folder in folders_in(source, root)
        for file in images_in(source, folder)
    ]
    for part, root in named:
        if not any(picture.part == part for picture in pictures):
            raise DataError(f"{root} has no folders of images: <class>/*.png (.jpg, .jpeg, .webp, .bmp) is meant")
    return pieces_of(pictures, ("label",), source, size)
