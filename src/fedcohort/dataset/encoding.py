"""Check that a text file is UTF-8."""

import codecs
import io
from pathlib import Path

from fedcohort.errors import DataError

PIECE = 2**20  # bytes that are decoded at a time


def check_utf8(source: Path | io.BytesIO, named: str) -> None:
    """Check that a file, or its unpacked content, is UTF-8 text. Raises `DataError`.

    named: the option and the file, as a message begins.
    """
    decoder, position = codecs.getincrementaldecoder("utf-8")(), 0
    try:
        with source if isinstance(source, io.BytesIO) else source.open("rb") as stream:
            while piece := stream.read(PIECE):
                decoder.decode(piece)
                position += len(piece)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(
            f"{named} is no UTF-8 text (byte 0x{byte:02x} near {position + error.start}): save it as UTF-8; of text "
            "from Windows, iconv -f windows-1252 -t utf-8 OLD.csv > NEW.csv writes a converted copy"
        ) from error
    except OSError as error:
        raise DataError(f"{named} can't be read: {error.strerror}") from error
