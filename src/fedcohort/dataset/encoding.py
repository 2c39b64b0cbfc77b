"""Texts in another encoding than UTF-8, which tables can't be read from whole."""

import codecs
from pathlib import Path

from fedcohort.errors import DataError

PIECE = 2**20  # bytes that are looked at together


def check_utf8(file: Path, named: str = "dataset.path: ") -> None:
    """Refuse texts that are no UTF-8: their columns would be left out, or their names not be read.

    named: the option that named the file, before its name in a message.
    """
    decoder, at = codecs.getincrementaldecoder("utf-8")(), 0
    try:
        with file.open("rb") as stream:
            while piece := stream.read(PIECE):
                decoder.decode(piece)
                at += len(piece)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(
            f"{named}{file} is no UTF-8 text (byte 0x{byte:02x} near {at + error.start}): save it as UTF-8, as "
            "iconv -f latin1 -t utf-8 does"
        ) from error
    except OSError as error:
        raise DataError(f"{named}{file} can't be read: {error.strerror}") from error
