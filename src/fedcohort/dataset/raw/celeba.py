"""Convert CelebA in the layout of its archives: images, and lists of attributes, identities and parts.

The source has img_align_celeba/, list_attr_celeba.txt, identity_CelebA.txt and list_eval_partition.txt. The lists may
also lie in Anno/ and Eval/, the images in Img/.

Columns: `image`, `celeb_id`, and the forty attributes as booleans. Parts: train, valid, test.
"""

from pathlib import Path

from fedcohort.dataset.csv_file import check_encoding
from fedcohort.dataset.raw.encoded import EncodedImage, plan_chunks
from fedcohort.dataset.raw.pieces import TablePiece
from fedcohort.dataset.raw.source import check_file, find_path, log_unused_files
from fedcohort.errors import DataError

PART_BY_CODE = {"0": "train", "1": "valid", "2": "test"}


def plan_table_pieces(raw_dir: Path, image_size: int | None) -> list[TablePiece]:
    """Return the pieces of the tables to write from CelebA's image folder and lists.

    Args:
        raw_dir: folder of the archives' content.
        image_size: width and height in pixels to which images are resized; None to keep the files' bytes.

    Raises:
        DataError: a file is missing, a line of a list is invalid, or the lists contradict each other; the message names
            the line or the image.
    """
    image_dir = find_path(raw_dir, "img_align_celeba", "Img/img_align_celeba", "img_align_celeba/img_align_celeba")
    file = find_path(raw_dir, "list_attr_celeba.txt", "Anno/list_attr_celeba.txt")
    header_lines, flags_by_image = _read_image_list(file, n_header_lines=2)
    _, person_by_image = _read_image_list(find_path(raw_dir, "identity_CelebA.txt", "Anno/identity_CelebA.txt"))
    _, part_by_image = _read_image_list(find_path(raw_dir, "list_eval_partition.txt", "Eval/list_eval_partition.txt"))
    if not flags_by_image:
        raise DataError(f"{file} names no image: restore the file")
    n_rows, columns = header_lines
    if repeated_names := [name for name in columns if columns.count(name) > 1 or name in ("image", "celeb_id")]:
        raise DataError(
            f"{file}: the attribute {repeated_names[0]!r} occurs twice, or has the name of another column: rename it"
        )
    encoded_images = []
    for image, (line_number, attribute_flags) in flags_by_image.items():
        location_text = f"{file}, line {line_number}"
        if len(attribute_flags) != len(columns) or set(attribute_flags) - {"-1", "1"}:
            raise DataError(f"{location_text}: expected {len(columns)} values of 1 or -1, one for each attribute")
        if image not in person_by_image or image not in part_by_image:
            list_name = "list_eval_partition.txt" if image in person_by_image else "identity_CelebA.txt"
            raise DataError(f"{location_text}: {image} is missing in {list_name}: add it there, or remove this line")
        split_code, person_id = (
            " ".join(values_by_image[image][1]) for values_by_image in (part_by_image, person_by_image)
        )
        if split_code not in PART_BY_CODE or not (
            person_id.isascii() and person_id.isdecimal() and len(person_id) < 19
        ):
            raise DataError(
                f"{image}: in list_eval_partition.txt the part must be 0, 1 or 2, got {split_code!r}, and in "
                f"identity_CelebA.txt the identity a whole number, got {person_id!r}: correct the line"
            )
        image_file = check_file(raw_dir, image_dir.relative_to(raw_dir) / image)
        column_values = (int(person_id), *(attribute_flag == "1" for attribute_flag in attribute_flags))
        encoded_images.append(EncodedImage(PART_BY_CODE[split_code], image_file, column_values))
    if n_rows != [str(len(encoded_images))]:
        raise DataError(
            f"{file}: the first line says {' '.join(n_rows)!r}, but {len(encoded_images)} images follow: correct it"
        )
    log_unused_files(image_dir, sorted((person_by_image.keys() | part_by_image.keys()) - flags_by_image.keys()))
    return plan_chunks(encoded_images, ("celeb_id", *columns), raw_dir, image_size)


def _read_image_list(file: Path, n_header_lines: int = 0) -> tuple[list[list[str]], dict[str, tuple[int, list[str]]]]:
    """Read a list of images with values, separated by spaces.

    Args:
        file: path of the list.
        n_header_lines: number of lines before the first image, without blank lines.

    Returns:
        The texts of each header line; and for each image the number of its line and its values.

    Raises:
        DataError: an image is listed twice, or the file is no UTF-8 text.
    """
    check_encoding(file.open("rb"), str(file))
    numbered_lines = [
        (line_number, line_text.split())
        for line_number, line_text in enumerate(file.read_text("utf-8").split("\n"), 1)
        if line_text.strip()
    ]
    line_by_image: dict[str, tuple[int, list[str]]] = {}
    for line_number, (image, *image_values) in numbered_lines[n_header_lines:]:
        if image in line_by_image:
            raise DataError(
                f"{file}, line {line_number}: {image} occurs in line {line_by_image[image][0]}, too: remove one"
            )
        line_by_image[image] = line_number, image_values
    return [header_words for _, header_words in numbered_lines[:n_header_lines]], line_by_image
