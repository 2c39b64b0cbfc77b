"""Convert CelebA in the layout of its archives: images, and lists of attributes, identities and parts.

img_align_celeba/, list_attr_celeba.txt, identity_CelebA.txt and list_eval_partition.txt. The lists may also lie in
Anno/ and Eval/, the images in Img/. Columns: `image`, `celeb_id`, and the forty attributes as booleans. Parts:
train, valid, test.
"""

from collections.abc import Iterator
from pathlib import Path

from fedcohort.dataset.csv_file import check_encoding
from fedcohort.dataset.raw.encoded import EncodedImage, plan_pieces
from fedcohort.dataset.raw.pieces import Piece
from fedcohort.dataset.raw.source import check_file, find_first, log_left_out
from fedcohort.errors import DataError

PARTS = {"0": "train", "1": "valid", "2": "test"}


def plan(source: Path, size: int | None) -> list[Piece]:
    """Return the tables to write from CelebA's image folder and lists.

    Raises `DataError` for an invalid line of a list, with its number, and for an image that a list lacks.
    """
    images = find_first(source, "img_align_celeba", "Img/img_align_celeba", "img_align_celeba/img_align_celeba")
    file = find_first(source, "list_attr_celeba.txt", "Anno/list_attr_celeba.txt")
    lines = _read_lines(file)
    identities = _read_pairs(find_first(source, "identity_CelebA.txt", "Anno/identity_CelebA.txt"))
    parts = _read_pairs(find_first(source, "list_eval_partition.txt", "Eval/list_eval_partition.txt"))
    _, count = next(lines, (0, []))
    _, names = next(lines, (0, []))
    if repeated := [name for name in names if names.count(name) > 1 or name in ("image", "celeb_id")]:
        raise DataError(f"{file}: the attribute {repeated[0]!r} is there twice, or has the name of another column")
    rows, first_line = list[EncodedImage](), dict[str, int]()
    for line, (image, *values) in lines:
        where = f"{file}, line {line}"
        if len(values) != len(names) or set(values) - {"-1", "1"}:
            raise DataError(f"{where}: expected {len(names)} values of 1 or -1, one for each attribute")
        if first_line.setdefault(image, line) != line:
            raise DataError(f"{where}: line {first_line[image]} names {image}, too")
        if image not in identities or image not in parts:
            raise DataError(f"{where}: {image} is in no list of {'parts' if image in identities else 'identities'}")
        part, identity = parts[image], identities[image]
        if part not in PARTS or not (identity.isascii() and identity.isdecimal() and len(identity) < 19):
            raise DataError(f"{image}: part must be 0, 1 or 2, got {part!r}; identity a number, got {identity!r}")
        path = check_file(source, images.relative_to(source) / image)
        rows.append(EncodedImage(PARTS[part], path, (int(identity), *(value == "1" for value in values))))
    if not rows:
        raise DataError(f"{file} names no image")
    if count != [str(len(rows))]:
        raise DataError(f"{file}: the first line says {' '.join(count)!r}, and {len(rows)} images follow: correct it")
    log_left_out(images, sorted((set(identities) | set(parts)) - set(first_line)))
    return plan_pieces(rows, ("celeb_id", *names), source, size)


def _read_lines(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of each line that is not empty."""
    check_encoding(file.open("rb"), str(file))
    with file.open(encoding="utf-8") as stream:
        for line, text in enumerate(stream, 1):
            if words := text.split():
                yield line, words


def _read_pairs(file: Path) -> dict[str, str]:
    """Return the second field of each line by its first, the name of an image. Raises `DataError` for repeats."""
    values: dict[str, str] = {}
    for line, words in _read_lines(file):
        if len(words) != 2:
            raise DataError(f"{file}, line {line}: an image's name and a number are expected")
        if words[0] in values:
            raise DataError(f"{file}, line {line}: {words[0]} is listed twice")
        values[words[0]] = words[1]
    return values
