"""Files that are replaced whole or not at all, and errors of the disk in one line that says what to do."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fedcohort.errors import DamagedFile, DiskError, OptionError

REFUSES = {  # other faults of a file are a bug's, and keep their traceback
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE),
}


def refuses(error: BaseException) -> bool:
    """Whether it is the disk that refuses to take more."""
    return isinstance(error, OSError) and error.errno in REFUSES


@contextmanager
def in_one_line(folder: Path) -> Iterator[None]:
    """Turn an error of the disk into a `DiskError`; folder: where things are written."""
    try:
        yield
    except OSError as error:
        if not refuses(error):
            raise
        where = error.filename or folder
        raise DiskError(
            f"{where} could not be written ({error.strerror or error}): what was saved before is whole. Make room and "
            "go on with resume=true"
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Let the block write a new file beside `path`, which takes the place of `path` when the block has ended.

    The draft has a name that only this function uses. What a killed process left there is removed first, and so is a
    link, so that nothing outside the folder is written to. A `path` that is a link is replaced, not followed.
    """
    draft = path.with_name(f".{path.name}.fedcohort-draft")
    draft.unlink(missing_ok=True)
    try:
        yield draft
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def check_outputs(folder: Path, names: Iterable[str], page: str, mark: str) -> None:
    """Check that a command which writes into `folder` replaces nothing but what it wrote before.

    Args:
        folder: where to, which need not exist.
        names: of the files that the command writes or removes.
        page: the one of them that shows who wrote it.
        mark: a text that every such page holds.

    Raises `OptionError` where one of the files exists, and the page is none of this command's.
    """
    taken = next((name for name in names if os.path.lexists(folder / name)), None)
    if taken is None:
        return
    try:
        ours = (folder / page).is_file() and mark in (folder / page).read_text()
    except (OSError, ValueError):
        ours = False
    if not ours:
        raise OptionError(f"{folder} holds {taken}, which this command did not write: move it, or name another folder")


def is_plain(path: Path) -> bool:
    """Return whether `path` is a regular file or a folder: reading a pipe waits for ever, a device has no end."""
    return path.is_file() or path.is_dir()


def is_file(path: Path) -> bool:
    """Return whether there is a regular file at `path`, perhaps behind a link; False where there is nothing.

    Raises `DamagedFile` for a folder, a link to nothing, a named pipe or a device: a reader of a pipe waits for ever.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise DamagedFile(f"{path} is damaged: it is a link to nothing. Restore the file from a copy") from None
        return False
    except OSError as error:
        raise DamagedFile(f"{path} is damaged: it can't be read ({error.strerror})") from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a named pipe, a socket or a device"
        raise DamagedFile(f"{path} is damaged: it is {kind} and no file. Restore the file from a copy")
    return True
