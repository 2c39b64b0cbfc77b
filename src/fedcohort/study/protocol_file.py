"""The file of a method's runs in a level of the protocol, `protocol.json`: written from results, and checked when read.

    format, level, selector   The format's number, and names.
    overrides                 Overrides of the method, by study.
    runs                      Rows of `results.parquet` with some of its columns, and study and overrides of the run.

A file may come from someone else. Its runs must be those that the studies of this copy define for the level and the
method, with equal overrides. Nothing that a file names is executed.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.results.metric import is_accuracy
from fedcohort.study import checks
from fedcohort.study.definition import Overrides, RunKey
from fedcohort.study.protocol import ProtocolPart, load_protocol_level
from fedcohort.study.result_files import COLUMN_TYPES, DONE
from fedcohort.study.results import EMPTY_RESULT_ROW, Results
from fedcohort.study.runner import Run
from fedcohort.study.same_cost import resolve_conditions

FILE_FORMAT = 1
PROTOCOL_FILE_OPTIONS = ("format", "level", "selector", "overrides", "runs")
CONFIG_IDENTITY_COLUMNS = ("config_hash", "budget")
MEASURED_COLUMNS = ("fingerprint", "rounds", "late", "bytes", "client_flops", "virtual_s")
CODE_ORIGIN_COLUMNS = ("commit", "dirty", "sources", "versions", "processor")
RUN_COLUMNS = ("cell", "selector", "seed", *CONFIG_IDENTITY_COLUMNS, *MEASURED_COLUMNS, *CODE_ORIGIN_COLUMNS)
PYTHON_TYPES = {"string": str, "int64": int, "float64": float, "bool": bool}


@dataclass(frozen=True)
class ProtocolFile:
    """The runs of a method in a level of the evaluation protocol, read from a `protocol.json` and checked.

    Attributes:
        path: the file.
        level: name of the level, which says how many settings and seeds are run, such as "quick".
        selector: name of the method.
        runs_by_part: for each study of the level, its settings and seeds, and a row of results for each run.
    """

    path: Path
    level: str
    selector: str
    runs_by_part: Sequence[tuple[ProtocolPart, Results]]


def format_protocol(level: str, runs_by_part: Sequence[tuple[ProtocolPart, Results, Sequence[Run]]]) -> str:
    """Return the content of a `protocol.json`, the runs of a method in a level of the evaluation protocol.

    Args:
        level: name of the level.
        runs_by_part: the level's settings and seeds of each study, with the study's results and the level's runs, all
            of which are done.
    """
    parts = [part for part, _, _ in runs_by_part]
    runs = []
    for part, results, part_runs in runs_by_part:
        for condition, seed in part_runs:
            row = results.rows[condition.key(seed)]
            columns = {name: row[name] for name in RUN_COLUMNS}
            runs.append({"study": part.study.name, "overrides": condition.overrides, **columns})
    overrides = {part.study.name: part.study.overrides[part.selector] for part in parts}
    protocol_content = (FILE_FORMAT, level, parts[0].selector, overrides, runs)
    return json.dumps(dict(zip(PROTOCOL_FILE_OPTIONS, protocol_content, strict=True)), indent=1) + "\n"


def read_protocol(path: Path, studies: Path) -> ProtocolFile:
    """Read a `protocol.json` of `fedcohort protocol report`; the folder `studies` defines levels and studies.

    Raises `OptionError` that names the file and the fault.
    """
    with checks.name_file_in_errors(path, PROTOCOL_FILE_OPTIONS):
        try:
            protocol_content = checks.read_mapping("the file", json.loads(path.read_text(encoding="utf-8")))
        except RecursionError as error:
            raise ValueError from error
        if protocol_content.get("format") != FILE_FORMAT:
            raise ranges.range_error(
                "format", f"{FILE_FORMAT}, the format of this version", protocol_content.get("format")
            )
        checks.check_option_names("", protocol_content, PROTOCOL_FILE_OPTIONS, PROTOCOL_FILE_OPTIONS)
        ranges.identifier("selector", protocol_content["selector"])
        if not isinstance(protocol_content["runs"], list):
            raise ranges.range_error("runs", "a list", protocol_content["runs"])
        parts = {
            part.study.name: part
            for part in load_protocol_level(studies, protocol_content["level"], protocol_content["selector"])
        }
        for study_name, overrides in checks.read_named_mapping("overrides", protocol_content["overrides"]).items():
            checks.read_overrides(f"overrides.{study_name}", overrides)
        expected_overrides = {name: list(part.study.overrides[part.selector]) for name, part in parts.items()}
        if protocol_content["overrides"] != expected_overrides:
            raise ranges.range_error(
                "overrides", f"those of this copy, {expected_overrides}", protocol_content["overrides"]
            )
        results = {name: Results(part.study.folder) for name, part in parts.items()}
        for i, node in enumerate(protocol_content["runs"]):
            run = _read_run(f"runs.{i}", node, parts)
            results[run["study"]].rows[run["cell"], run["selector"], run["seed"]] = run
        for name, part in parts.items():
            _check_overrides(part, results[name])
    return ProtocolFile(
        path, protocol_content["level"], protocol_content["selector"], [(parts[name], results[name]) for name in parts]
    )


def _read_run(yaml_path: str, node: object, parts: dict[str, ProtocolPart]) -> dict[str, Any]:
    """Return a run of a `protocol.json` as a row of results.

    Args:
        yaml_path: path of the run in the file, for messages.
        node: content of the run there.
        parts: settings and seeds of each study in the level, by name of the study.

    Raises:
        OptionError: a value has the wrong type, or is out of range.
    """
    run = checks.read_mapping(yaml_path, node)
    checks.check_option_names(yaml_path, run, option_names := ("study", "overrides", *RUN_COLUMNS), option_names)
    ranges.choice(f"{yaml_path}.study", run["study"], *parts)
    checks.read_overrides(f"{yaml_path}.overrides", run["overrides"])
    for name in RUN_COLUMNS:
        type_name, value = COLUMN_TYPES[name], run[name]
        if type(value) is not PYTHON_TYPES[type_name]:
            raise ranges.range_error(f"{yaml_path}.{name}", f"of the type {type_name}", value)
        if type_name in ("int64", "float64") and name != "late":
            ranges.number(f"{yaml_path}.{name}", value, "[0, inf)")
    try:
        versions = json.loads(run["versions"] or "{}")
        is_valid_value = all(isinstance(value, str) and name.isprintable() for name, value in versions.items())
    except (AttributeError, RecursionError, ValueError):
        is_valid_value = False
    if not is_valid_value:
        raise ranges.range_error(f"{yaml_path}.versions", "versions by name, as JSON", run["versions"])
    if is_accuracy(parts[run["study"]].study.metric) and not (run["late"] != run["late"] or 0 <= run["late"] <= 1):
        raise ranges.range_error(f"{yaml_path}.late", "a number in [0, 1], or NaN for a run that diverged", run["late"])
    return EMPTY_RESULT_ROW | run | {"status": DONE, "overrides": tuple(run["overrides"])}


def _check_overrides(part: ProtocolPart, results: Results) -> None:
    """Raise `OptionError` unless `results` has all runs of `part`, each with the overrides that the study defines."""
    expected_overrides = dict[RunKey, Overrides]()
    for condition in resolve_conditions(part.study, part.list_conditions(), part.seeds, results.rows):
        expected_overrides |= {condition.key(seed): condition.overrides for seed in condition.seeds or part.seeds}
    overrides = {key: row["overrides"] for key, row in results.rows.items()}
    for key in sorted({*overrides, *expected_overrides}):
        if overrides.get(key) != (expected_run_overrides := expected_overrides.get(key)):
            raise ranges.range_error(
                f"runs: {part.study.name} {' '.join(map(str, key))}: the overrides",
                f"{expected_run_overrides or 'none: it is no run of the level'}",
                overrides.get(key),
            )
