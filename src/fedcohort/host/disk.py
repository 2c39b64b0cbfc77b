"""A disk that is full, or that can't be written any more: one line that says so, and what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedcohort.errors import DiskError

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
