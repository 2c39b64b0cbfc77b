"""Digests that detect changes of a file or of one of its lines."""

import hashlib
import re
from pathlib import Path

DIGEST_BYTES = 16
DIGESTED_JSON = re.compile(r'(.*), "digest": "([0-9a-f]+)"\}\s*', re.DOTALL)


def digest_of_bytes(*parts: bytes | memoryview) -> str:
    """Return the BLAKE2b digest of the concatenated parts, in hex digits."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def digest_of_file(path: Path) -> str:
    """Return the BLAKE2b digest of a file's content, in hex digits."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


def append_digest(text: str, before: str = "") -> str:
    """Return the text of a JSON object with its digest as the last entry.

    Args:
        text: the object as text; not empty.
        before: the digest of the previous line, if lines are chained.
    """
    body = text.rstrip()
    return f'{body[:-1]}, "digest": "{digest_of_bytes(before.encode(), body.encode())}"}}'


def check_digest(text: str, before: str = "") -> tuple[str, bool | None]:
    """Return the digest that the text must have, and whether it has it; None if it has no digest, as in older files."""
    match = DIGESTED_JSON.fullmatch(text)
    if match is None:
        return digest_of_bytes(before.encode(), text.rstrip().encode()), None
    expected = digest_of_bytes(before.encode(), f"{match[1]}}}".encode())
    return expected, expected == match[2]
