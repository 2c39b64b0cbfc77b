"""Digests that tell whether a file, or one line of it, is what was written."""

import hashlib
import re
from pathlib import Path

BYTES = 16
SEALED = re.compile(r'(.*), "digest": "([0-9a-f]+)"\}\s*', re.DOTALL)


def of(*parts: bytes | memoryview) -> str:
    """Return the BLAKE2b digest of the parts, one behind the other, in hex digits."""
    digest = hashlib.blake2b(digest_size=BYTES)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def of_file(path: Path) -> str:
    """Return the digest of a file's content."""
    digest = hashlib.blake2b(digest_size=BYTES)
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


def seal(text: str, before: str = "") -> str:
    """Return a JSON object's text with its digest as the last entry.

    Args:
        text: of an object that is not empty.
        before: the digest of the line before, where lines are chained.
    """
    body = text.rstrip()
    return f'{body[:-1]}, "digest": "{of(before.encode(), body.encode())}"}}'


def unseal(text: str, before: str = "") -> tuple[str, bool | None]:
    """Return the digest that `text` must have, and whether it has it; None where it has none, as in older files."""
    match = SEALED.fullmatch(text)
    if match is None:
        return of(before.encode(), text.rstrip().encode()), None
    wanted = of(before.encode(), f"{match[1]}}}".encode())
    return wanted, wanted == match[2]
