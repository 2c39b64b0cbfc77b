"""Convert a folder of images with a folder for each class: SRC/train/<class>/*, SRC/test/<class>/*; or SRC/<class>/*.

Without folders train and test all images are the training part: dataset=folder cuts a test part from it
(dataset.test_share=0.2). Columns: `image`, `label` (the class's name). `valid`, `val` or `validation` becomes a part,
too, which dataset=folder takes for the server's validation data (dataset.valid=none does not read it).
"""

from pathlib import Path

from fedcohort.dataset.raw.encoded import EncodedImage, plan_chunks
from fedcohort.dataset.raw.pieces import TablePiece
from fedcohort.dataset.raw.source import IMAGE_SUFFIXES, find_images, list_subfolders, log_unused_files
from fedcohort.errors import DataError

PART_BY_FOLDER = {"train": "train", "test": "test", "valid": "valid", "val": "valid", "validation": "valid"}


def plan_table_pieces(raw_dir: Path, image_size: int | None) -> list[TablePiece]:
    """Return the pieces of the tables to write from a folder of images.

    Args:
        raw_dir: folder with a subfolder for each class, or with parts such as `train` that have one.
        image_size: width and height in pixels to which images are resized; None to keep the files' bytes.

    Raises:
        DataError: a part or a class has no images, there are several folders of validation data, or a link leads out of
            the folder.
    """
    images = [image for part_images in list_images_by_part(raw_dir).values() for image in part_images]
    return plan_chunks(images, ("label",), raw_dir, image_size)


def has_class_folders(folder: Path) -> bool:
    """Return whether a subfolder of `folder`, or of `folder`/train if that exists, contains images."""
    class_folder_parent = folder / "train" if (folder / "train").is_dir() else folder
    class_folders = [path for path in class_folder_parent.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return any(
        file.suffix.lower() in IMAGE_SUFFIXES for class_folder in class_folders for file in class_folder.iterdir()
    )


def list_images_by_part(raw_dir: Path) -> dict[str, list[EncodedImage]]:
    """Return the images of each part (train, valid, test) with the names of their classes.

    Args:
        raw_dir: folder with a subfolder for each class, or with parts such as `train` that have one.

    Raises:
        DataError: a part or a class has no images, there are several folders of validation data, or a link leads out of
            the folder.
    """
    subfolders = list_subfolders(raw_dir, raw_dir)
    part_folders = [("train", raw_dir)]
    if (raw_dir / "train").is_dir():
        part_folders = [(PART_BY_FOLDER[folder.name], folder) for folder in subfolders if folder.name in PART_BY_FOLDER]
        log_unused_files(raw_dir, [folder.name for folder in subfolders if folder.name not in PART_BY_FOLDER])
    if len(dict(part_folders)) < len(part_folders):
        raise DataError(
            f"{raw_dir} has several folders of validation data, such as {part_folders[-1][1].name}: keep one"
        )
    images_by_part: dict[str, list[EncodedImage]] = {}
    for split_name, part_folder in part_folders:
        images_by_part[split_name] = []
        for folder in list_subfolders(raw_dir, part_folder):
            image_files = find_images(raw_dir, folder)
            images_by_part[split_name] += [EncodedImage(split_name, file, (folder.name,)) for file in image_files]
        if not images_by_part[split_name]:
            raise DataError(
                f"{part_folder} has no folders of images: <class>/*.png (.jpg, .jpeg, .webp, .bmp) is expected"
            )
    return images_by_part
