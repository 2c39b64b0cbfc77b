"""Damaged or wrong files of studies: each is refused with the file's name, and the option or the column in it."""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from pyarrow import compute, parquet

from fedcohort.command import study
from fedcohort.host import messages
from fedcohort.startup import command_line
from fedcohort.study.result_files import CURVES, RESULTS
from hostile.forked import fork
from hostile.harness import Answer, Case
from hostile.run_files import DAMAGES, Damage, swap
from study.test_judge import LATE_MEANS, ROWS
from study.tiny import TINY, TUNE, make_results, write_study
from yaml_words import CONFIGS

Change = Callable[[Any], Any]
CELL: dict[str, Any] = {"words": ["heterogeneity=iid"]}
TEXTS: dict[str, Any] = {
    "emptied": "",
    "a comment only": "# nothing\n",
    "a list": "- title\n- seeds\n",
    "one word": "study\n",
    "a number": "3\n",
    "zeros": "\0" * 200,
    "a tab for a space": "cells:\n\tequal: 1\n",
    "an open bracket": "seeds: [0, 1\n",
    "an open quote": 'title: "A study\n',
    "conflict markers": "<<<<<<< HEAD\ntitle: A\n=======\ntitle: B\n>>>>>>> other\n",
    "an unknown tag": "title: !!python/object/apply:os.getcwd []\n",
    "an unknown anchor": "title: *nothing\n",
    "a list that holds itself": "title: &a [*a]\n",
    "two documents": "title: A\n---\ntitle: B\n",
    "no text in UTF-8": b"title: \xff\xfe\xfa\n",
    "half of it": None,  # made from the whole
    "seeds twice": "seeds: [5]\n",  # behind the whole
    "conflict markers in its middle": "<<<<<<< HEAD\nseeds: [1]\n=======\nseeds: [2]\n>>>>>>> other\n",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "title": {"null": None, "empty": "", "a number": 5, "a list": ["A"]},
    "question": {"null": None, "blank": "  ", "options": {"a": 1}},
    "baseline": {
        "null": None,
        "empty": "",
        "a list": ["random"],
        "two names": {"a": ["x=1"], "b": ["x=1"]},
        "without a list": {"mine": "selector=random"},
        "a number": 3,
    },
    "selectors": {
        "null": None,
        "a text": "flash",
        "a number": 3,
        "with null": [None],
        "with a number": [3],
        "with a list": [["flash"]],
        "with one twice": ["flash", "flash"],
        "with the baseline": ["random"],
        "with words without a value": [{"mine": ["selector"]}],
        "with a seed": [{"mine": ["selector=flash", "seed=1"]}],
    },
    "yardsticks": {"a text": "oracle_clean", "a method again": ["round_robin"], "with a number": [1]},
    "beside": {"a text": "full", "a method again": ["round_robin"], "options": {"full": 1}},
    "seeds": {
        "null": None,
        "none": [],
        "a number": 3,
        "a text": "0,1",
        "with one twice": [0, 0],
        "negative": [-1, 0],
        "with a half": [0.5, 1],
        "with a truth": [True, 2],
        "with a text": ["a"],
        "with null": [None],
    },
    "metric": {"null": None, "empty": "", "a number": 5, "a loss": "test/loss", "of clients": "clients/acc_mean"},
    "horizon": {"null": None, "zero": 0, "negative": -3, "a half": 1.5, "a text": "10", "a truth": True, "a list": [1]},
    "target": {"a text": "high", "a list": [0.5], "not a number": float("nan"), "infinite": float("inf")},
    "win": {
        "a list": [1],
        "a number": 0.05,
        "an unknown option": {"alfa": 0.05},
        "alpha 0": {"alpha": 0},
        "alpha 2": {"alpha": 2},
        "alpha a text": {"alpha": "small"},
        "least negative": {"least": -1},
        "least not a number": {"least": float("nan")},
        "one seed": {"seeds": 1},
        "half a seed": {"seeds": 2.5},
        "worth 0": {"worth": 0},
        "worth infinite": {"worth": float("inf")},
    },
    "few": {
        "a list": ["round_robin"],
        "an unknown row": {"flash": 1},
        "zero": {"round_robin": 0},
        "more than the seeds": {"round_robin": 3},
        "a half": {"round_robin": 1.5},
        "of the baseline": {"random": 1},
    },
    "variants": {
        "a list": ["round_robin"],
        "of one": {"a": ["round_robin"]},
        "unknown": {"a": ["flash", "oort"]},
        "a text": {"a": "round_robin"},
    },
    "notes": {"a text": "note", "with a number": [3]},
    "common": {
        "null": None,
        "a text": "rounds=3",
        "with a number": [3],
        "without a value": ["rounds"],
        "without a name": ["=3"],
        "with a seed": ["seed=3"],
        "with resume": ["resume=true"],
        "with a place for runs": ["paths.logs=elsewhere"],
    },
    "cells": {
        "null": None,
        "none": {},
        "a list": [CELL],
        "a text": "iid",
        "a cell of nothing": {"equal": None},
        "a cell of a list": {"equal": ["heterogeneity=iid"]},
        "without words": {"equal": {"label": "a"}},
        "words a text": {"equal": {"words": "heterogeneity=iid"}},
        "words without a value": {"equal": {"words": ["heterogeneity"]}},
        "words with a seed": {"equal": {"words": ["seed=3"]}},
        "words that rows override": {"equal": {"words": ["selector=powd"]}},
        "an unknown option": {"equal": {**CELL, "lable": "a"}},
        "label a number": {"equal": {**CELL, "label": 3}},
        "label empty": {"equal": {**CELL, "label": " "}},
        "two of one label": {"a": {**CELL, "label": "x"}, "b": {**CELL, "label": "x"}},
        "axis a list": {"equal": {**CELL, "axis": ["a"]}},
        "target a text": {"equal": {**CELL, "target": "high"}},
        "target not a number": {"equal": {**CELL, "target": float("nan")}},
        "bounds a list": {"equal": {**CELL, "bounds": ["clean"]}},
        "bounds of a text": {"equal": {**CELL, "bounds": {"clean": "label_noise=none"}}},
        "bounds without a value": {"equal": {**CELL, "bounds": {"clean": ["label_noise"]}}},
        "rows a text": {"equal": {**CELL, "rows": "round_robin"}},
        "rows unknown": {"equal": {**CELL, "rows": ["flash"]}},
        "rows none": {"equal": {**CELL, "rows": []}},
        "rows twice": {"equal": {**CELL, "rows": ["round_robin", "round_robin"]}},
    },
}
SPACE = {"selector.discount": {"low": 0.0, "high": 1.0}}
TUNES: dict[str, Any] = {
    "a list": [TUNE],
    "without trials": {name: TUNE[name] for name in TUNE if name != "trials"},
    "no trials": {**TUNE, "trials": 0},
    "an unknown option": {**TUNE, "trails": 4},
    "the study's seeds": {**TUNE, "seeds": [0, 7]},
    "seeds a number": {**TUNE, "seeds": 7},
    "unknown cells": {**TUNE, "cells": ["other"]},
    "no cells": {**TUNE, "cells": []},
    "an unknown metric": {**TUNE, "metric": "test/acc"},
    "space a list": {**TUNE, "space": ["ucb_cs"]},
    "a row without options": {**TUNE, "space": {"ucb_cs": {}}},
    "an option of one value": {**TUNE, "space": {"ucb_cs": {"selector.tie": ["id"]}}},
    "an option of one value twice": {**TUNE, "space": {"ucb_cs": {"selector.tie": ["id", "id"]}}},
    "low above high": {**TUNE, "space": {"ucb_cs": {"selector.discount": {"low": 2, "high": 1}}}},
    "low a text": {**TUNE, "space": {"ucb_cs": {"selector.discount": {"low": "a", "high": 1}}}},
    "a logarithm of zero": {**TUNE, "space": {"ucb_cs": {"selector.discount": {"low": 0, "high": 1, "log": True}}}},
    "without high": {**TUNE, "space": {"ucb_cs": {"selector.discount": {"low": 0}}}},
}
TUNED = {
    "a list": "- a\n",
    "one word": "a\n",
    "conflict markers": TEXTS["conflict markers"],
    "a row of nothing": "ucb_cs:\n",
    "a row that lacks facts": "ucb_cs: {words: [selector.discount=0.5]}\n",
    "trials of nothing": "ucb_cs: {words: [], trials: 1, seeds: [7], cells: [equal], metric: server_val/acc, value: 1,"
    " default: 1, tried: [{words: []}], spare: []}\n",
}


@cache
def template() -> Path:
    """Make a folder with the study `tiny`, whose results are made up."""
    home = Path(tempfile.mkdtemp(prefix="study_files_"))
    for name, seeds in (("tiny", [0, 1]), ("other", [0])):
        folder = home / "studies" / name
        late = {cell: {row: values[-len(seeds) :] for row, values in of.items()} for cell, of in LATE_MEANS.items()}
        make_results(write_study(folder, **{**ROWS, "seeds": seeds}), late).save()
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
        done = command_line.run_with_one_line_errors(
            lambda: codes.append(study.main([verb, "tiny"])), (verb, "tiny"), CONFIGS
        )
        return done or codes[-1]

    return fork(work)


def case(name: str, damage: Damage, *expected: str, verb: str = "status") -> Case:
    return Case(name, partial(answer, damage, verb), expected)


def on(name: str, damage: Damage) -> Damage:
    """Return the damage to one file of the study's folder."""
    return lambda folder: damage(folder / name)


def put(name: str, text: str) -> Damage:
    return on(name, lambda path: path.write_text(text))


def take_from_other(name: str) -> Damage:
    return lambda folder: shutil.copy(folder.parent / "other" / name, folder / name)


def without(name: str) -> tuple[Change, str]:
    """Return the change of a table that lacks a column, and the expected message."""
    return (lambda table: table.drop_columns(name), name)


def _write_yaml(changes: Mapping[str, Any], folder: Path) -> None:
    text = yaml.safe_dump({**TINY, **changes}, sort_keys=False)
    (folder / "study.yaml").write_text(text)


def _write_text(content: str | bytes | None, how: str, folder: Path) -> None:
    path = folder / "study.yaml"
    whole = path.read_bytes()
    data = whole[: len(whole) // 3] if content is None else content.encode() if isinstance(content, str) else content
    path.write_bytes(whole + data if how in ("seeds twice", "conflict markers in its middle") else data)


def _drop(name: str, folder: Path) -> None:
    kept = {key: value for key, value in TINY.items() if key != name}
    (folder / "study.yaml").write_text(yaml.safe_dump(kept, sort_keys=False))


def _definitions() -> Iterator[Case]:
    for what, content in TEXTS.items():
        yield case(f"study.yaml: {what}", partial(_write_text, content, what), "study.yaml")
    for what in ("a folder", "a link to nothing", "a named pipe", "missing"):
        yield case(f"study.yaml: {what}", on("study.yaml", DAMAGES[what]), "study")
    for name in ("title", "question", "baseline", "selectors", "cells", "seeds"):
        yield case(f"study.yaml: no {name}", partial(_drop, name), "study.yaml", f"{name} is missing")
    yield case("study.yaml: an unknown option", partial(_write_yaml, {"sedes": [1]}), "study.yaml", "sedes")
    for option, values in OPTIONS.items():
        for what, value in values.items():
            yield case(f"study.yaml: {option} {what}", partial(_write_yaml, {option: value}), "study.yaml", option)
    for what, value in TUNES.items():
        yield case(f"study.yaml: tune {what}", partial(_write_yaml, {"tune": value}), "study.yaml", "tune")
    for what, text in TUNED.items():
        yield case(f"tuned.yaml: {what}", put("tuned.yaml", text), "tuned.yaml")


def bare(damage: Damage) -> Damage:
    """The damage to a study of an older version, which has no manifest."""

    def both(folder: Path) -> None:
        (folder / "manifest.json").unlink()
        damage(folder)

    return both


def _edit(name: str, change: Change, folder: Path) -> None:
    """Write a changed table without a manifest: its pages are sound."""
    (folder / "manifest.json").unlink(missing_ok=True)
    parquet.write_table(change(parquet.read_table(folder / name)), folder / name)


def _cast(column: str, kind: Any) -> Change:
    return lambda table: table.set_column(table.column_names.index(column), column, table[column].cast(kind))


def _blank(column: str) -> Change:
    def change(table: Any) -> Any:
        first = pa.array([True] + [False] * (table.num_rows - 1))
        emptied = compute.if_else(first, pa.nulls(table.num_rows, table[column].type), table[column])
        return table.set_column(table.column_names.index(column), column, emptied)

    return change


def _set(column: str, value: Any) -> Change:
    def change(table: Any) -> Any:
        values = [value, *table[column].to_pylist()[1:]]
        return table.set_column(table.column_names.index(column), column, pa.array(values, table[column].type))

    return change


TABLES: dict[str, dict[str, tuple[Change, str]]] = {
    RESULTS: {
        **{f"without {name}": without(name) for name in ("cell", "selector", "seed", "status", "metric", "words")},
        **{f"{name} as a text": (_cast(name, pa.string()), name) for name in ("seed", "rounds", "late", "wall_s")},
        "seed as a real number": (_cast("seed", pa.float64()), "seed"),
        "bytes as integers": (_cast("bytes", pa.int64()), "bytes"),
        **{
            f"an empty cell of {name}": (_blank(name), name)
            for name in ("cell", "selector", "seed", "status", "metric")
        },
        "a row twice": (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "two rows"),
        "all rows twice": (lambda table: pa.concat_tables([table, table]), "two rows"),
        "a column twice": (lambda table: table.append_column("status", table["status"]), "status"),
        "an unknown status": (_set("status", "dnoe"), "dnoe"),
        "another metric": (_set("metric", "test/acc_worst"), "test/acc_worst"),
        "no columns": (lambda table: table.select([]), "cell"),
    },
    CURVES: {
        **{f"without {name}": without(name) for name in ("cell", "seed", "step", "value", "bytes")},
        **{f"{name} as a text": (_cast(name, pa.string()), name) for name in ("seed", "step", "value", "virtual_s")},
        "step as a real number": (_cast("step", pa.float64()), "step"),
        **{f"an empty cell of {name}": (_blank(name), name) for name in ("cell", "selector", "seed", "step", "value")},
        "a row twice": (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "in order"),
        "rounds backwards": (lambda table: table.take(list(range(table.num_rows))[::-1]), "in order"),
        "a negative round": (_set("step", -1), "in order"),
        "a column twice": (lambda table: table.append_column("value", table["value"]), "value"),
    },
}


def _results() -> Iterator[Case]:
    for name, (what, damage) in product((RESULTS, CURVES, "manifest.json"), DAMAGES.items()):
        if name != "manifest.json" or what not in ("missing", "without its last byte"):  # that is a line end
            yield case(f"{name}: {what}", on(name, damage), name)
    # Without a manifest only the content of pages is checked: in a file this small the middle is a header of one.
    silent = ("a bit of its header", "a bit of its middle", "a bit of its footer", "a byte more")
    for name, (what, damage) in product((RESULTS, CURVES), DAMAGES.items()):
        if what not in silent:
            yield case(f"without a manifest, {name}: {what}", bare(on(name, damage)), name)
    for name in (RESULTS, CURVES, "manifest.json"):
        yield case(f"{name}: another study's", take_from_other(name), "tiny")
        yield case(f"{name}: conflict markers", put(name, str(TEXTS["conflict markers"])), name)
    yield case("results and curves change places", lambda folder: swap(CURVES, folder / RESULTS), "parquet")
    yield case("without a manifest, they change places", bare(lambda folder: swap(CURVES, folder / RESULTS)), "parquet")
    for what, text in {
        "a list": "[]",
        "of a newer format": '{"format": 9, "files": {}}',
        "without files": "{}",
    }.items():
        yield case(f"manifest.json: {what}", put("manifest.json", text), "manifest.json")
    for name, edits in TABLES.items():
        for what, (change, said) in edits.items():
            yield case(f"{name}: {what}", partial(_edit, name, change), name, said)
    for name, what in product((RESULTS, CURVES), ("truncated", "a bit of its footer")):
        yield case(f"report, {name}: {what}", on(name, DAMAGES[what]), name, verb="report")


def cases() -> list[Case]:
    """List the cases: definitions, tuned rows, results, curves and manifests."""
    return [*_definitions(), *_results()]
