"""Damaged or wrong results of studies: each file is rejected with its name, and the column in it."""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute, parquet

from config_options import CONFIGS
from fedcohort.command import study
from fedcohort.host import messages
from fedcohort.startup import command_line
from fedcohort.study.result_files import CURVES_FILE, RESULTS_FILE
from hostile.damage import DAMAGES, Damage, swap
from hostile.forked import fork
from hostile.harness import Answer, Case
from study.small_study import make_results, write_study
from study.test_judge import LATE_MEANS, METHODS

Change = Callable[[Any], Any]
CONFLICT = "<<<<<<< HEAD\ntitle: A\n=======\ntitle: B\n>>>>>>> other\n"


@cache
def template() -> Path:
    """Make a folder with the study `tiny`, whose results are made up."""
    home = Path(tempfile.mkdtemp(prefix="study_files_"))
    for name, seeds in (("tiny", [0, 1]), ("other", [0])):
        folder = home / "studies" / name
        late_values = {
            cell: {row: values[-len(seeds) :] for row, values in source.items()} for cell, source in LATE_MEANS.items()
        }
        make_results(write_study(folder, **{**METHODS, "seeds": seeds}), late_values).save_files()
    (home / "configs").symlink_to(CONFIGS)
    return home


def answer(damage: Damage, verb: str, folder: Path) -> Answer:
    """Copy the studies, damage the folder of `tiny`, and call the command."""
    home = folder / "home"
    shutil.copytree(template(), home, symlinks=True)
    damage(home / "studies" / "tiny")

    def work() -> int:
        os.chdir(home)
        logging.getLogger("fedcohort").handlers.clear()
        messages.log_to_terminal()
        codes: list[int] = []
        exit_code = command_line.run_with_one_line_errors(
            lambda: codes.append(study.main([verb, "tiny"])), (verb, "tiny"), CONFIGS
        )
        return exit_code or codes[-1]

    return fork(work)


def case(name: str, damage: Damage, *expected: str, verb: str = "status") -> Case:
    return Case(name, partial(answer, damage, verb), expected)


def damage_file(name: str, damage: Damage) -> Damage:
    """Return the damage to one file of the study's folder."""
    return lambda folder: damage(folder / name)


def write_text(name: str, text: str) -> Damage:
    return damage_file(name, lambda path: path.write_text(text))


def copy_from_other(name: str) -> Damage:
    return lambda folder: shutil.copy(folder.parent / "other" / name, folder / name)


def drop_column(name: str) -> tuple[Change, str]:
    """Return the change of a table that lacks a column, and the expected message."""
    return (lambda table: table.drop_columns(name), name)


def damage_old_study(damage: Damage) -> Damage:
    """The damage to a study of an older version, which has no manifest."""

    def write_both(folder: Path) -> None:
        (folder / "manifest.json").unlink()
        damage(folder)

    return write_both


def _edit(name: str, change: Change, folder: Path) -> None:
    """Write a changed table without a manifest: its pages are sound."""
    (folder / "manifest.json").unlink(missing_ok=True)
    parquet.write_table(change(parquet.read_table(folder / name)), folder / name)


def _cast(column: str, kind: Any) -> Change:
    return lambda table: table.set_column(table.column_names.index(column), column, table[column].cast(kind))


def _blank_first_cell(column: str) -> Change:
    def change(table: Any) -> Any:
        first = pa.array([True] + [False] * (table.num_rows - 1))
        column_with_null = compute.if_else(first, pa.nulls(table.num_rows, table[column].type), table[column])
        return table.set_column(table.column_names.index(column), column, column_with_null)

    return change


def _set_column(column: str, value: Any) -> Change:
    def change(table: Any) -> Any:
        values = [value, *table[column].to_pylist()[1:]]
        return table.set_column(table.column_names.index(column), column, pa.array(values, table[column].type))

    return change


TABLES: dict[str, dict[str, tuple[Change, str]]] = {
    RESULTS_FILE: {
        **{f"without {name}": drop_column(name) for name in ("cell", "selector", "seed", "status", "metric", "words")},
        **{f"{name} as a text": (_cast(name, pa.string()), name) for name in ("seed", "rounds", "late", "wall_s")},
        "seed as a real number": (_cast("seed", pa.float64()), "seed"),
        "bytes as integers": (_cast("bytes", pa.int64()), "bytes"),
        **{
            f"an empty cell of {name}": (_blank_first_cell(name), name)
            for name in ("cell", "selector", "seed", "status", "metric")
        },
        "a row twice": (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "two rows"),
        "all rows twice": (lambda table: pa.concat_tables([table, table]), "two rows"),
        "a column twice": (lambda table: table.append_column("status", table["status"]), "status"),
        "an unknown status": (_set_column("status", "dnoe"), "dnoe"),
        "another metric": (_set_column("metric", "test/acc_worst"), "test/acc_worst"),
        "no columns": (lambda table: table.select([]), "cell"),
    },
    CURVES_FILE: {
        **{f"without {name}": drop_column(name) for name in ("cell", "seed", "step", "value", "bytes")},
        **{f"{name} as a text": (_cast(name, pa.string()), name) for name in ("seed", "step", "value", "virtual_s")},
        "step as a real number": (_cast("step", pa.float64()), "step"),
        **{
            f"an empty cell of {name}": (_blank_first_cell(name), name)
            for name in ("cell", "selector", "seed", "step", "value")
        },
        "a row twice": (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "in ascending order"),
        "rounds backwards": (lambda table: table.take(list(range(table.num_rows))[::-1]), "in ascending order"),
        "a negative round": (_set_column("step", -1), "in ascending order"),
        "a column twice": (lambda table: table.append_column("value", table["value"]), "value"),
    },
}


def _results() -> Iterator[Case]:
    for name, (fault_name, damage) in product((RESULTS_FILE, CURVES_FILE, "manifest.json"), DAMAGES.items()):
        if name != "manifest.json" or fault_name not in ("missing", "without its last byte"):  # that is a line end
            yield case(f"{name}: {fault_name}", damage_file(name, damage), name)
    # Without a manifest only the content of pages is checked: in a file this small the middle is a header of one.
    undetected = ("a bit of its header", "a bit of its middle", "a bit of its footer", "a byte more")
    for name, (fault_name, damage) in product((RESULTS_FILE, CURVES_FILE), DAMAGES.items()):
        if fault_name not in undetected:
            yield case(f"without a manifest, {name}: {fault_name}", damage_old_study(damage_file(name, damage)), name)
    for name in (RESULTS_FILE, CURVES_FILE, "manifest.json"):
        yield case(f"{name}: another study's", copy_from_other(name), "tiny")
        yield case(f"{name}: conflict markers", write_text(name, CONFLICT), name)
    yield case("results and curves change places", lambda folder: swap(CURVES_FILE, folder / RESULTS_FILE), "parquet")
    yield case(
        "without a manifest, they change places",
        damage_old_study(lambda folder: swap(CURVES_FILE, folder / RESULTS_FILE)),
        "parquet",
    )
    for fault_name, text in {
        "a list": "[]",
        "of a newer format": '{"format": 9, "files": {}}',
        "without files": "{}",
    }.items():
        yield case(f"manifest.json: {fault_name}", write_text("manifest.json", text), "manifest.json")
    for name, edits in TABLES.items():
        for fault_name, (change, message) in edits.items():
            yield case(f"{name}: {fault_name}", partial(_edit, name, change), name, message)
    for name, fault_name in product((RESULTS_FILE, CURVES_FILE), ("truncated", "a bit of its footer")):
        yield case(f"report, {name}: {fault_name}", damage_file(name, DAMAGES[fault_name]), name, verb="report")


def cases() -> list[Case]:
    """List the cases: results, curves and manifests."""
    return list(_results())
