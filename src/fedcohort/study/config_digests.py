"""Digests of the configurations of a study's runs: equal digests mean equal configurations, without composing them.

The digest of a run covers its overrides and the yaml files that its composition can read. These files are `train.yaml`
and the files of the groups that an override, or another of these files, names. A method that is added or changed
therefore leaves the digests of the others unchanged. So does a change of comments, or of the help page.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import yaml

YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where libyaml is installed
PRIMARY_CONFIG = "train"
FILE_NAME_PATTERN = re.compile(r"\w+")  # a file with another name, such as `my-method.yaml`, counts for all runs
PACKAGE_COMMENT_PATTERN = re.compile(r"^#\s*@package.*", re.MULTILINE)  # the only comment that Hydra reads


@cache
def parse_yaml_text(yaml_text: str) -> str:
    """Return the content of a yaml file as JSON, without comments and without the options of Hydra itself.

    Comments with `@package` stay, since Hydra reads them. The text of an invalid file is returned unchanged.
    """
    try:
        yaml_options = yaml.load(yaml_text, YAML_LOADER)
    except yaml.YAMLError:
        return yaml_text
    if isinstance(yaml_options, dict):
        yaml_options.pop("hydra", None)
    return "\n".join([*PACKAGE_COMMENT_PATTERN.findall(yaml_text), json.dumps(yaml_options, default=str)])


@cache
def find_words_in_text(searched_text: str) -> frozenset[str]:
    """Return all words in `searched_text`, each of which may name a configuration file."""
    return frozenset(FILE_NAME_PATTERN.findall(searched_text))


class ConfigDigests:
    """Digests of overrides together with the yaml files that their composition can read, below `configs_folder`."""

    def __init__(self, configs_folder: Path) -> None:
        # content by path; by their names without `.yaml`, which several groups may use
        self._files: dict[str, dict[str, str]] = {}
        self._primary_names = {PRIMARY_CONFIG}
        self._digests: dict[frozenset[str], str] = {}
        for path in sorted(configs_folder.rglob("*.yaml")):
            yaml_content = parse_yaml_text(path.read_text(encoding="utf-8", errors="replace"))
            self._files.setdefault(path.stem, {})[path.relative_to(configs_folder).as_posix()] = yaml_content
            if not FILE_NAME_PATTERN.fullmatch(path.stem):
                self._primary_names.add(path.stem)

    def find_digest(self, overrides: Sequence[str]) -> str:
        """Return the digest of `overrides` and of the yaml files that their composition can read, 12 hex digits."""
        yaml_stems = find_words_in_text(" ".join(overrides)).intersection(self._files)
        if yaml_stems not in self._digests:
            yaml_digest = hashlib.blake2b(digest_size=8)
            for path, yaml_content in self._find_reachable_files(yaml_stems).items():
                yaml_digest.update(f"{path}\0{yaml_content}\0".encode())
            self._digests[yaml_stems] = yaml_digest.hexdigest()
        return hashlib.blake2b("\0".join([*overrides, self._digests[yaml_stems]]).encode(), digest_size=6).hexdigest()

    def _find_reachable_files(self, yaml_stems: frozenset[str]) -> dict[str, str]:
        """Return the content by path of the yaml files that `yaml_stems` reach.

        A file is reached if it is named, without `.yaml`, in `yaml_stems` or anywhere in a reached file.
        """
        reached_yaml_stems, new_yaml_stems = frozenset[str](), yaml_stems | self._primary_names
        while new_yaml_stems := new_yaml_stems.intersection(self._files) - reached_yaml_stems:
            reached_yaml_stems |= new_yaml_stems
            yaml_contents = [yaml_text for stem in new_yaml_stems for yaml_text in self._files[stem].values()]
            new_yaml_stems = frozenset().union(*map(find_words_in_text, yaml_contents))
        return {path: yaml_text for stem in sorted(reached_yaml_stems) for path, yaml_text in self._files[stem].items()}
