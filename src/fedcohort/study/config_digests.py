"""Digests of the configurations of a study's runs: equal digests mean equal configurations, without composing them.

The digest of a run covers its overrides and the yaml files that its composition can read. These files are `train.yaml`
and the files of the groups that an override, or another of these files, names. A method that is added or changed
therefore leaves the digests of the others unchanged. So does a change of comments, or of the help page.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from fedcohort.startup.run_info import YAML_LOADER

PRIMARY = "train"
NAME = re.compile(r"\w+")  # a file with another name, such as `my-method.yaml`, counts for all runs
PACKAGE = re.compile(r"^#\s*@package.*", re.MULTILINE)  # the only comment that Hydra reads


@dataclass(frozen=True)
class YamlFile:
    """A yaml file without its comments and without options of Hydra itself, which are in no run's configuration."""

    path: str
    content: str

    @classmethod
    def read(cls, path: Path, configs: Path) -> "YamlFile":
        """Read a yaml file below `configs`. The digest of an invalid file is that of its text."""
        text = content = path.read_text(encoding="utf-8", errors="replace")
        with suppress(yaml.YAMLError):
            options = yaml.load(text, YAML_LOADER)
            if isinstance(options, dict):
                options.pop("hydra", None)
            content = "\n".join([*PACKAGE.findall(text), json.dumps(options, default=str)])
        return cls(path.relative_to(configs).as_posix(), content)

    @cached_property
    def names(self) -> frozenset[str]:
        """All words in the file: possible names of other files, but also keys, choices and numbers."""
        return frozenset(NAME.findall(self.content))


class ConfigDigests:
    """Computes digests of overrides and of the yaml files in `configs` that their composition can read."""

    def __init__(self, configs: Path) -> None:
        self._files: dict[str, list[YamlFile]] = {}  # by their names without `.yaml`, which several groups may use
        self._always = {PRIMARY}
        self._digests: dict[frozenset[str], str] = {}
        for path in sorted(configs.rglob("*.yaml")):
            self._files.setdefault(path.stem, []).append(YamlFile.read(path, configs))
            if not NAME.fullmatch(path.stem):
                self._always.add(path.stem)

    def digest_of(self, overrides: Sequence[str]) -> str:
        """Return the digest of the overrides and the files that their composition can read, as 12 hex digits."""
        names = self._names_in(overrides)
        if names not in self._digests:
            digest = hashlib.blake2b(digest_size=8)
            for file in self._find_reachable(names):
                digest.update(f"{file.path}\0{file.content}\0".encode())
            self._digests[names] = digest.hexdigest()
        return hashlib.blake2b("\0".join([*overrides, self._digests[names]]).encode(), digest_size=6).hexdigest()

    def files_of(self, overrides: Sequence[str]) -> list[str]:
        """Return the paths under `configs` that the composition of the overrides can read."""
        return [file.path for file in self._find_reachable(self._names_in(overrides))]

    def _names_in(self, overrides: Sequence[str]) -> frozenset[str]:
        return frozenset(NAME.findall(" ".join(overrides))).intersection(self._files)

    def _find_reachable(self, names: frozenset[str]) -> list[YamlFile]:
        """Return the files with these names, and all files that these name, directly or indirectly."""
        reached, fresh = frozenset[str](), names | self._always
        while fresh := fresh.intersection(self._files) - reached:
            reached |= fresh
            fresh = frozenset().union(*(file.names for name in fresh for file in self._files[name]))
        return [file for name in sorted(reached) for file in self._files[name]]
