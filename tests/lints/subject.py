"""`commit-msg` hook of pre-commit: a subject has at most 72 characters, starts with a capital and has no full stop."""

import re
import sys
from pathlib import Path


def is_subject(text: str) -> bool:
    """Return whether a commit's first line has the length and form of a subject."""
    return re.fullmatch(r"[A-Z].{1,70}[^.]", text) is not None


if __name__ == "__main__":
    subject = Path(sys.argv[1]).read_text(encoding="utf-8").split("\n")[0]
    if not is_subject(subject):
        raise SystemExit(f"{subject!r} has {len(subject)} characters. Write at most 72, a capital first, no full stop.")
