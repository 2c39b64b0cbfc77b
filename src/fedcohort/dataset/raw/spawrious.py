"""Convert Spawrious in the layout of its archive: SRC[/spawrious224]/<0 or 1>/<place>/<breed>/*.png.

Columns: `image`, `label` (the breed), `place`, `half` (0 or 1). The only part is train.parquet, from which
`dataset=spawrious` takes a test part. The folder for domain adaptation is left out.
"""

from pathlib import Path

from fedcohort.dataset.breeds import BREEDS, PLACES
from fedcohort.dataset.raw.encoded import EncodedImage, plan_chunks
from fedcohort.dataset.raw.pieces import TablePiece
from fedcohort.dataset.raw.source import find_images, list_subfolders, log_unused_files
from fedcohort.errors import DataError

HALF_FOLDERS = ("0", "1")


def plan_table_pieces(raw_dir: Path, image_size: int | None) -> list[TablePiece]:
    """Return the pieces of the table to write from Spawrious.

    Args:
        raw_dir: folder of the archive's content.
        image_size: width and height in pixels to which images are resized; None to keep the files' bytes.

    Raises:
        DataError: there is a folder of an unknown place or breed, or no image.
    """
    archive_folder = raw_dir / "spawrious224" if (raw_dir / "spawrious224").is_dir() else raw_dir
    images, half_folders = list[EncodedImage](), list_subfolders(raw_dir, archive_folder)
    log_unused_files(archive_folder, [folder.name for folder in half_folders if folder.name not in HALF_FOLDERS])
    for split_half_folder in (folder for folder in half_folders if folder.name in HALF_FOLDERS):
        for place_folder in _list_allowed_subfolders(raw_dir, split_half_folder, PLACES):
            for breed_folder in _list_allowed_subfolders(raw_dir, place_folder, BREEDS):
                column_values = (breed_folder.name, place_folder.name, int(split_half_folder.name))
                images += [EncodedImage("train", file, column_values) for file in find_images(raw_dir, breed_folder)]
    if not images:
        raise DataError(
            f"{archive_folder} has no images: expected files such as {HALF_FOLDERS[0]}/{PLACES[0]}/{BREEDS[0]}/*.png"
        )
    return plan_chunks(images, ("label", "place", "half"), raw_dir, image_size)


def _list_allowed_subfolders(raw_dir: Path, folder: Path, folder_names: tuple[str, ...]) -> list[Path]:
    """Return the subfolders of `folder`, which lies in `raw_dir`. Raises `DataError` for one not in `folder_names`."""
    subfolders = list_subfolders(raw_dir, folder)
    unexpected_folder = next((subfolder for subfolder in subfolders if subfolder.name not in folder_names), None)
    if unexpected_folder is not None:
        raise DataError(
            f"{unexpected_folder} is an unknown folder: allowed are {', '.join(folder_names)}; rename or remove it"
        )
    return subfolders
