"""Digests that detect changes of a file or of one of its lines."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from fedcohort.errors import DamagedFile
from fedcohort.host.disk import is_file

DIGEST_BYTES = 16
DIGESTED_JSON_PATTERN = re.compile(r'(.*), "digest": "([0-9a-f]+)"\}\s*', re.DOTALL)


def digest_of_bytes(*hashed_contents: bytes | memoryview) -> str:
    """Return the BLAKE2b digest, in hex digits, of the `hashed_contents` one after the other."""
    return hashlib.blake2b(b"".join(hashed_contents), digest_size=DIGEST_BYTES).hexdigest()


def digest_of_file(path: Path) -> str:
    """Return the BLAKE2b digest, in hex digits, of the content of the file `path`."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=DIGEST_BYTES)).hexdigest()


def append_digest(json_object_text: str, previous_digest: str = "") -> str:
    """Return the text of a JSON object with its digest as the last entry.

    Args:
        json_object_text: the object as text, with at least one entry.
        previous_digest: digest of the previous line, in hex digits, if lines are chained.
    """
    json_text = json_object_text.rstrip()
    return f'{json_text[:-1]}, "digest": "{digest_of_bytes(previous_digest.encode(), json_text.encode())}"}}'


def read_digest(json_text: str) -> str:
    """Return the digest that `append_digest` has added to `json_text`, the text of a JSON object."""
    return json_text.rpartition('"digest": "')[2][: 2 * DIGEST_BYTES]


def check_digest(json_text: str, previous_digest: str = "") -> tuple[str, bool | None]:
    """Compute the digest of a JSON object's text, and compare it with the digest in the text.

    Returns:
        The computed digest, and whether the text has this digest; None if the text has no digest.

    Args:
        json_text: the object as text; older versions of fedcohort wrote no digest.
        previous_digest: digest of the previous line, in hex digits, if lines are chained.
    """
    digest_match = DIGESTED_JSON_PATTERN.fullmatch(json_text)
    if digest_match is None:
        return digest_of_bytes(previous_digest.encode(), json_text.rstrip().encode()), None
    computed_digest = digest_of_bytes(previous_digest.encode(), f"{digest_match[1]}}}".encode())
    return computed_digest, computed_digest == digest_match[2]


def read_json(path: Path, advice_text: str) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if there is no file.

    Args:
        path: the file.
        advice_text: what the user can do about a damaged file, for the message.

    Raises:
        DamagedFile: the file cannot be read or is no JSON object, or its digest is wrong. A missing digest is no error.
    """
    if not is_file(path):
        return None
    try:
        file_text = path.read_text()
        json_content = json.loads(file_text)
        if not isinstance(json_content, dict) or ("digest" in json_content and not check_digest(file_text)[1]):
            raise ValueError("it is no JSON object, or its digest is wrong")
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFile(f"{path} is damaged: it is not the JSON that was written ({error}). {advice_text}") from error
    return json_content
