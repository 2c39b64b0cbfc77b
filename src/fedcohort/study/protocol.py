"""The levels of the evaluation protocol, `studies/protocol.yaml`: settings and seeds in which a method is compared.

A level is a list of parts of studies. Each part has runs of the method, of the baseline, and of the reference, which is
the baseline at the bytes of the method (`user_methods.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedcohort import ranges
from fedcohort.startup.compose import read_yaml
from fedcohort.study import checks
from fedcohort.study.definition import BOUND, METHOD, SAME_BYTES_PREFIX, Condition, Study
from fedcohort.study.definition import list_conditions as list_study_conditions
from fedcohort.study.definition_file import load_study
from fedcohort.study.leaderboard import check_comparable_study
from fedcohort.study.user_methods import add_method, add_user_methods

PROTOCOL_LEVELS_FILE = "protocol.yaml"
PROTOCOL_PART_OPTIONS = ("study", "settings", "seeds")


@dataclass(frozen=True)
class ProtocolPart:
    """The settings and seeds of one study in which a level of the evaluation protocol compares a method.

    A level, such as "quick" or "full", has one part per study.

    Attributes:
        study: the study, which has the method and its reference of equal bytes.
        selector: name of the method.
        settings: names of the settings.
        seeds: seeds of all runs.
    """

    study: Study
    selector: str
    settings: Sequence[str]
    seeds: Sequence[int]

    @property
    def methods(self) -> tuple[str, str, str]:
        """The names of the method, of its reference of equal bytes, and of the baseline."""
        return self.selector, SAME_BYTES_PREFIX + self.selector, self.study.baseline

    def list_conditions(self) -> list[Condition]:
        """Return the conditions of the part, without the study's bounds."""
        conditions = list_study_conditions(self.study, self.settings, self.methods)
        return [condition for condition in conditions if self.study.find_role(condition.method) != BOUND]


def load_protocol_level(studies: Path, level: str, selector: str, configs: Path | None = None) -> list[ProtocolPart]:
    """Return the parts of studies in which a level of `protocol.yaml`, such as "quick", compares a method.

    Args:
        studies: the folder of studies, which has the file.
        level: name of the level.
        selector: name of the method, a selector.
        configs: the folder of Hydra's groups, which must have the selector; None for results of any selector.

    Raises:
        OptionError: an unknown level or selector, a wrong option, or studies that can't be compared.
    """
    path = studies / PROTOCOL_LEVELS_FILE
    with checks.name_file_in_errors(path, ()):
        levels = checks.read_named_mapping("levels", read_yaml(path))
    ranges.choice("level", level, *levels)
    with checks.name_file_in_errors(path, ()):
        parts = [_read_protocol_part(f"{level}.{i}", node, studies) for i, node in enumerate(levels[level])]
        if not parts:
            raise ranges.range_error(level, "a list of one or more nodes {study, settings, seeds}", levels[level])
        for part in parts:
            check_comparable_study(level, part.study, parts[0].study)
    return [_add_selector(part, selector, configs) for part in parts]


def _read_protocol_part(yaml_path: str, node: object, studies: Path) -> ProtocolPart:
    options = checks.read_mapping(yaml_path, node)
    checks.check_option_names(yaml_path, options, PROTOCOL_PART_OPTIONS, PROTOCOL_PART_OPTIONS)
    ranges.identifier(f"{yaml_path}.study", options["study"])
    study = load_study(studies / options["study"])
    if options["settings"] is not None:
        ranges.words(f"{yaml_path}.settings", options["settings"], *study.settings)
    seeds = study.seeds if options["seeds"] is None else checks.read_seeds(f"{yaml_path}.seeds", options["seeds"])
    return ProtocolPart(study, "", options["settings"] or list(study.settings), seeds)


def _add_selector(part: ProtocolPart, selector: str, configs: Path | None) -> ProtocolPart:
    study, reference = part.study, SAME_BYTES_PREFIX + selector
    if study.find_role(selector) != METHOD:
        raise ranges.range_error("selector", f"no baseline, oracle or reference of {study.name}", selector)
    extended_study = add_method(study, reference) if configs is None else add_user_methods(study, [reference], configs)
    return replace(part, study=extended_study, selector=selector)
