"""Atomic replacement of files, checks of paths, and messages for errors of the disk."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeGuard

from fedcohort.errors import DamagedFile, DiskError, OptionError

DISK_REFUSAL_CODES = {  # errors that a user can resolve; other errors of a file are bugs, and keep their traceback
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE),
}


def is_disk_error(error: BaseException) -> TypeGuard[OSError]:
    """Return whether `error` means that the disk does not accept data."""
    return isinstance(error, OSError) and error.errno in DISK_REFUSAL_CODES


def find_unwritable_folder(error: OSError) -> Path | None:
    """Return the folder that must become writable, for an error of a lock, a draft or a file in a read-only folder.

    The result is None for other errors.
    """
    path, has_file = Path(str(error.filename or "")), bool(error.filename)
    is_unreadable = os.access(path, os.F_OK) and not os.access(path, os.R_OK)
    is_read_only = os.access(path.parent, os.F_OK) and not os.access(path.parent, os.W_OK)
    is_write_error = has_file and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) and not is_unreadable
    return path.parent if is_write_error and (is_read_only or path.name.startswith(".")) else None


def describe_disk_error(error: OSError) -> str:
    """Return a message that names the file of an error of the disk, or its folder, and says what to do."""
    folder = find_unwritable_folder(error)
    problem_text = (
        f"{error.filename or 'a file'} could not be read or written ({error.strerror}): free disk space or allow access"
        if folder is None
        else f"{folder} is read-only ({error.strerror}): make the folder and its files writable"
    )
    return f"{problem_text}, and type the command again. HYDRA_FULL_ERROR=1 shows where"


@contextmanager
def convert_disk_errors(folder: Path) -> Iterator[None]:
    """Convert an error of the disk in the `with` block into a `DiskError`; the block writes to `folder`."""
    try:
        yield
    except OSError as error:
        if not is_disk_error(error):
            raise
        raise DiskError(
            f"{find_unwritable_folder(error) or error.filename or folder} could not be written "
            f"({error.strerror or error}). Files saved before are intact: free disk space and resume with resume=true"
        ) from error


@contextmanager
def write_file_atomically(target_path: Path) -> Iterator[Path]:
    """Yield the path of a draft, which replaces `target_path` when the `with` block has ended without an error.

    Only this function uses the draft's name. A draft of a killed process, or a link of this name, is removed first, so
    that nothing outside the folder is written to. If `target_path` is a link, the link is replaced. An error of the
    disk names `target_path`, which the user knows.
    """
    temporary_path = target_path.with_name(f".{target_path.name}.fedcohort-draft")
    try:
        temporary_path.unlink(missing_ok=True)
        yield temporary_path
        os.replace(temporary_path, target_path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename in (None, str(temporary_path)):
            error.filename = str(target_path)
        with suppress(OSError):
            temporary_path.unlink(missing_ok=True)
        raise


def reject_foreign_files(folder: Path, output_names: Iterable[str], page_name: str, generated_page_mark: str) -> None:
    """Check that a command that writes into `folder` replaces only files that it wrote before.

    Args:
        folder: the folder, which need not exist.
        output_names: names of the files that the command writes or removes.
        page_name: the page among these files, which shows whether this command wrote them.
        generated_page_mark: a text that each page of the command contains.

    Raises:
        OptionError: one of the files exists, and this command did not write the page.
    """
    existing_output = next((k for k in output_names if os.path.lexists(folder / k)), None)
    is_generated_page = existing_output is None
    with suppress(OSError, ValueError):
        is_generated_page |= (folder / page_name).is_file() and generated_page_mark in (folder / page_name).read_text()
    if not is_generated_page:
        raise OptionError(
            f"{folder} holds {existing_output}, which this command did not write: move it, or choose another folder"
        )


def is_file_or_folder(path: Path) -> bool:
    """Return whether `path` is a regular file or a folder, but not a pipe or a device, whose reading may not end."""
    return path.is_file() or path.is_dir()


def is_file(path: Path) -> bool:
    """Return whether there is a regular file at `path`, possibly behind a link; False if there is nothing.

    Raises `DamagedFile` for a folder, a broken link, a named pipe or a device, as reading a pipe may not end, and for a
    path that the system can't access.
    """
    try:
        file_mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise DamagedFile(
                f"{path} is damaged: it is a link to a missing file. Restore that file, or remove the link"
            ) from None
        return False
    except OSError as error:
        raise DamagedFile(f"{path} is damaged: it can't be read ({error.strerror}). Restore it from a copy") from error
    if not stat.S_ISREG(file_mode):
        hardware_kind = "a folder" if stat.S_ISDIR(file_mode) else "a named pipe, a socket or a device"
        raise DamagedFile(f"{path} is damaged: it is {hardware_kind} and no file. Restore the file from a copy")
    return True
