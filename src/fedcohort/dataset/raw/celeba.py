"""CelebA as its archives have it: the images, and lists of attributes, identities and parts.

img_align_celeba/, list_attr_celeba.txt, identity_CelebA.txt and list_eval_partition.txt. The lists may also lie in
Anno/ and Eval/, the images in Img/. Columns: `image`, `celeb_id`, and the forty attributes as truth values. Parts:
train, valid, test.
"""

from collections.abc import Iterator
from pathlib import Path

from fedcohort.dataset.encoding import check_utf8
from fedcohort.dataset.raw.encoded import Picture, pieces_of
from fedcohort.dataset.raw.pieces import Piece
from fedcohort.dataset.raw.source import first_of, inside
from fedcohort.errors import DataError

PARTS = {"0": "train", "1": "valid", "2": "test"}


def plan(source: Path, size: int | None) -> list[Piece]:
    """Plan the tables. Raises `DataError` by line, and for an image that not all lists have."""
    images = first_of(source, "img_align_celeba", "Img/img_align_celeba", "img_align_celeba/img_align_celeba")
    where = first_of(source, "list_attr_celeba.txt", "Anno/list_attr_celeba.txt")
    attributes = _lines(where)
    of = _table(first_of(source, "identity_CelebA.txt", "Anno/identity_CelebA.txt"))
    parts = _table(first_of(source, "list_eval_partition.txt", "Eval/list_eval_partition.txt"))
    next(attributes, None)  # the number of images
    _, _, names = next(attributes, (None, 0, []))
    pictures = []
    for file, line, (image, *values) in attributes:
        if len(values) != len(names) or set(values) - {"-1", "1"}:
            raise DataError(f"{file}, line {line}: {len(names)} values, each 1 or -1, are meant, as many as attributes")
        if image not in of or image not in parts:
            raise DataError(f"{file}, line {line}: {image} is in no list of {'parts' if image in of else 'identities'}")
        if parts[image] not in PARTS or not of[image].isdecimal():
            raise DataError(f"{image}: part {parts[image]!r} and identity {of[image]!r} must be 0, 1 or 2 and a number")
        path = inside(source, images.relative_to(source) / image)
        pictures.append(Picture(PARTS[parts[image]], path, (int(of[image]), *(value == "1" for value in values))))
    if not pictures:
        raise DataError(f"{where} names no image")
    return pieces_of(pictures, ("celeb_id", *names), source, size)


def _lines(file: Path) -> Iterator[tuple[Path, int, list[str]]]:
    """The lines that aren't empty, as words, with the file and their numbers."""
    check_utf8(file, "")
    with file.open(encoding="utf-8") as stream:
        for line, text in enumerate(stream, 1):
            if words := text.split():
                yield file, line, words


def _table(file: Path) -> dict[str, str]:
    """The second word of each line by the first."""
    found = {}
    for _, line, words in _lines(file):
        if len(words) != 2:
            raise DataError(f"{file}, line {line}: an image's name and a number are meant")
        found[words[0]] = words[1]
    return found
