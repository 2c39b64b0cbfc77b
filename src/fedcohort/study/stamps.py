"""Stamps of a study's runs: equal stamps are equal configs, and no run is composed to tell.

A stamp is a digest of a run's words and of the yaml files that its composition can read. Hydra reads `train.yaml`, and
of a group the files that a word or a file that it reads names; a file that nothing of these names is none of the run's.
So a method that is added or changed leaves the stamps of others what they were, unless `train.yaml` names it, be it as
an example in its help.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PRIMARY = "train"
NAME = re.compile(r"\w+")  # a file that is called otherwise, `my-method.yaml`, counts for all runs
COMMENT = re.compile(r"(^|\s+)#[^'\"\n]*$", re.MULTILINE)  # one with a quote may be text, and counts


@dataclass(frozen=True)
class File:
    """A yaml file without its comments. names: all that it could name, its values' words and numbers among them."""

    path: str
    text: str

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(NAME.findall(self.text))


class Stamps:
    """The stamps under the yaml files of `configs`, the folder of the groups, as they are now."""

    def __init__(self, configs: Path) -> None:
        self._files: dict[str, list[File]] = {}  # by their names without `.yaml`; some groups share a name
        self._always = {PRIMARY}
        self._known: dict[frozenset[str], str] = {}
        for path in sorted(configs.rglob("*.yaml")):
            bare = COMMENT.sub("", path.read_text(encoding="utf-8", errors="replace"))
            self._files.setdefault(path.stem, []).append(File(path.relative_to(configs).as_posix(), bare))
            if not NAME.fullmatch(path.stem):
                self._always.add(path.stem)

    def of(self, words: Sequence[str]) -> str:
        """Return twelve hex digits over `words` and the files that their composition can read."""
        named = self._named_by(words)
        if named not in self._known:
            digest = hashlib.blake2b(digest_size=8)
            for file in self._reach(named):
                digest.update(f"{file.path}\0{file.text}\0".encode())
            self._known[named] = digest.hexdigest()
        return hashlib.blake2b("\0".join([*words, self._known[named]]).encode(), digest_size=6).hexdigest()

    def files_of(self, words: Sequence[str]) -> list[str]:
        """Return the paths under `configs` that the composition of `words` can read."""
        return [file.path for file in self._reach(self._named_by(words))]

    def _named_by(self, words: Sequence[str]) -> frozenset[str]:
        return frozenset(NAME.findall(" ".join(words))).intersection(self._files)

    def _reach(self, named: frozenset[str]) -> list[File]:
        """Return the files of these names, and of those that they name, and so on."""
        reached, fresh = frozenset[str](), named | self._always
        while fresh := fresh.intersection(self._files) - reached:
            reached |= fresh
            fresh = frozenset().union(*(file.names for name in fresh for file in self._files[name]))
        return [file for name in sorted(reached) for file in self._files[name]]
