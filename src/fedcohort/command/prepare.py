"""fedcohort prepare imagefolder|leaf|celeba|waterbirds|spawrious SRC DST [size=N]: raw files as tables.

imagefolder   SRC/train/<class>/*, SRC/test/<class>/*, or SRC/<class>/*: for dataset=folder dataset.features=image
leaf          SRC/train/*.json, SRC/test/*.json, or SRC/*.json: for dataset=femnist, dataset=shakespeare, dataset=reddit
              (with its vocabulary.parquet), dataset=folder
celeba        img_align_celeba/ and the three lists: for dataset=celeba
waterbirds    metadata.csv and the images that it names: for dataset=waterbirds
spawrious     <0 or 1>/<place>/<breed>/*: for dataset=spawrious

DST gets train.parquet, and test.parquet and valid.parquet where there are such parts. Images keep their bytes, or are
made N x N pixels and stored as PNG with size=N. The same command resumes an interrupted conversion. SRC is a folder:
archives are not opened, nothing is unpickled, and what leads out of SRC, a link or a name in a list, is refused.
No file of DST is replaced.
"""

import importlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fedcohort import ranges, units
from fedcohort.command.arguments import read_options
from fedcohort.dataset.files import check_data_folder
from fedcohort.dataset.raw.pieces import write_tables
from fedcohort.errors import DataError, OptionError
from fedcohort.host import disk
from fedcohort.paths import expand_home

RAW_FORMATS = ("imagefolder", "leaf", "celeba", "waterbirds", "spawrious")
PROGRESS_INTERVAL_S = 5.0  # seconds between lines


def main(arguments: Sequence[str]) -> int:
    """Convert raw files to Parquet tables, and return the exit code 0.

    Args:
        arguments: kind, source and destination, and optionally size=N.

    Raises:
        OptionError: an argument is invalid.
        DataError: the files can't be read.
    """
    positional_arguments = [argument for argument in arguments if "=" not in argument]
    size_text = read_options([argument for argument in arguments if "=" in argument], ("size",)).get("size")
    if len(positional_arguments) != 3:
        raise OptionError(f"type fedcohort prepare KIND SRC DST, where KIND is one of {', '.join(RAW_FORMATS)}")
    raw_format, raw_folder = positional_arguments[0], check_data_folder(positional_arguments[1], "SRC")
    ranges.choice("the kind", raw_format, *RAW_FORMATS)
    output_folder = _check_destination(positional_arguments[2], raw_folder)
    image_size = None if size_text is None else ranges.parse_integer("size", size_text, "[1, 4096]")
    format_module = importlib.import_module(f"fedcohort.dataset.raw.{raw_format}")
    try:
        with disk.convert_disk_errors(output_folder):
            table_plan = format_module.plan_table_pieces(raw_folder, image_size)
            unique_column = getattr(format_module, "UNIQUE_CLIENT_COLUMN", "")
            n_rows_by_split = write_tables(table_plan, output_folder, make_progress_printer(), unique_column)
            if hasattr(format_module, "write_vocabulary"):
                format_module.write_vocabulary(output_folder)
    except OSError as error:  # not one of the disk
        problem_file = error.filename or output_folder
        raise DataError(f"{problem_file} can't be used ({error.strerror or error}): check its path") from error
    row_texts = ", ".join(
        f"{n_rows:,} row{'s' * (n_rows != 1)} in {split_name}.parquet" for split_name, n_rows in n_rows_by_split.items()
    )
    sys.stdout.write(f"{output_folder}: {row_texts}\n")
    return 0


def _check_destination(dst_path: str, raw_folder: Path) -> Path:
    """Return the folder `dst_path` to make, as an absolute path.

    Raises `OptionError` if it lies in the folder `raw_folder`, whose files are read, or its name can't be used.
    """
    try:
        output_folder = expand_home(dst_path)
        is_inside_source = output_folder.resolve().is_relative_to(raw_folder.resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise OptionError(f"{dst_path[:200]!r} can't be used as a folder's name ({error}): choose another") from error
    if not dst_path.strip():
        raise OptionError("DST must be the name of a new folder, got an empty text")
    if is_inside_source:
        raise OptionError(
            f"DST={output_folder} is inside SRC={raw_folder}, whose files are read: choose another folder"
        )
    return output_folder


def make_progress_printer() -> Callable[[str, int, int], None]:
    """Return a function that prints progress every few seconds and at the end.

    Its arguments are the name of a split, and the numbers of finished and of all pieces.
    """
    last_print_s = time.monotonic()

    def print_progress(split_name: str, n_done_pieces: int, n_pieces: int) -> None:
        nonlocal last_print_s
        if n_done_pieces == n_pieces or time.monotonic() - last_print_s >= PROGRESS_INTERVAL_S:
            last_print_s = time.monotonic()
            sys.stderr.write(f"{split_name}: {n_done_pieces} of {units.format_count(n_pieces, 'piece')}\n")

    return print_progress
