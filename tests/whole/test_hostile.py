"""The methods and attributes that cases of `make hostile` misuse exist; those cases run outside the suite."""

import re
from importlib import import_module

from hostile.components import GROUPS, HEADER, read_misuses

EXTRA = {"calls"}  # class variables of a misuse itself


def test_misused_methods_and_attributes_exist() -> None:
    exec(HEADER, {})
    bases = {group: getattr(import_module(f"fedcohort.{spec.module}"), spec.base) for group, spec in GROUPS.items()}
    names_by_group = [(group, method) for group, spec in GROUPS.items() for method in spec.methods]
    for misuse in read_misuses():
        if misuse.group != "signal":
            method_names = re.findall(r"^(?:def )?(\w+)(?:\(self|: ClassVar)", misuse.source, re.MULTILINE)
            names_by_group += [(misuse.group, name) for name in method_names]
    assert len(names_by_group) > 250
    assert [
        (group, name) for group, name in names_by_group if not hasattr(bases[group], name) and name not in EXTRA
    ] == []
