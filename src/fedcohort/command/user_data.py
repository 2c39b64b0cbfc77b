"""fedcohort data PATH: inspect a user's files, and print the open decisions and the command that trains on them."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedcohort.dataset.user_table.propose import Proposal, propose
from fedcohort.startup.overrides import spell_value

WIDTH = 12  # of the labels at the left


def is_path(word: str) -> bool:
    """Return whether `word` is a file or folder, and not a choice of the group dataset."""
    looks_like_path = "/" in word or word.startswith((".", "~")) or re.search(r"\.\w+$", word) is not None
    return not word.startswith("../model") and (looks_like_path or Path(word).exists())


def propose_options(path: str, words: Sequence[str]) -> tuple[Proposal, list[str]]:
    """Return what is proposed for the files of `path`, and the options of a run: those typed and those proposed.

    Raises:
        DataError: if no table can be read.
    """
    typed = dict(word.split("=", 1) for word in words if "=" in word)
    proposal = propose(path, {name: value.strip("'\"") for name, value in typed.items()})
    proposed = {"dataset": "folder", "dataset.path": path, **proposal.options}
    return proposal, [
        *(f"{name}={spell_value(name, value)}" for name, value in proposed.items() if name not in typed),
        *words,
    ]


def training_command(words: Sequence[str]) -> str:
    """Return the command that trains with these options, as a shell reads it."""
    quoted = [f'"{word}"' if "'" in word and not set(word) & set('"$`\\!') else shlex.quote(word) for word in words]
    return " ".join(["python train.py", *quoted])


def proposal_lines(proposal: Proposal) -> Iterator[str]:
    """Yield the lines that show a proposal."""
    for text in proposal.files:
        yield f"{'table':<{WIDTH}}{text}"
    names = [name for name, _, _ in proposal.columns]
    width = min(30, max(len(name) for name in names)) + 2
    for number, (name, kind, details) in enumerate(proposal.columns):
        yield f"{'' if number else 'columns':<{WIDTH}}{name:<{width}}{kind:<13}{details}".rstrip()
    yield ""
    for decision in proposal.decisions:
        options = " ".join(f"{name}={spell_value(name, value)}" for name, value in decision.options.items())
        yield f"{decision.topic:<{WIDTH}}{options or '(default)'}"
        yield f"{'':<{WIDTH}}  {decision.reason}"
    yield ""
