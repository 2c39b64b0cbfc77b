"""Wrong definitions of studies: `study.yaml` or `tuned.yaml` is rejected with its name and the option in it."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from hostile.damage import DAMAGES
from hostile.harness import Case
from hostile.study_files import CONFLICT, case, on, put
from study.small_study import SMALL_STUDY, TUNING

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
    "conflict markers": CONFLICT,
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
    "horizon": {"zero": 0, "negative": -3, "a half": 1.5, "a text": "10", "a truth": True, "a list": [1]},
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
    "a list": [TUNING],
    "without trials": {name: TUNING[name] for name in TUNING if name != "trials"},
    "no trials": {**TUNING, "trials": 0},
    "an unknown option": {**TUNING, "trails": 4},
    "the study's seeds": {**TUNING, "seeds": [0, 7]},
    "seeds a number": {**TUNING, "seeds": 7},
    "unknown cells": {**TUNING, "cells": ["other"]},
    "no cells": {**TUNING, "cells": []},
    "an unknown metric": {**TUNING, "metric": "test/acc"},
    "space a list": {**TUNING, "space": ["ucb_cs"]},
    "a row without options": {**TUNING, "space": {"ucb_cs": {}}},
    "an option of one value": {**TUNING, "space": {"ucb_cs": {"selector.tie": ["id"]}}},
    "an option of one value twice": {**TUNING, "space": {"ucb_cs": {"selector.tie": ["id", "id"]}}},
    "low above high": {**TUNING, "space": {"ucb_cs": {"selector.discount": {"low": 2, "high": 1}}}},
    "low a text": {**TUNING, "space": {"ucb_cs": {"selector.discount": {"low": "a", "high": 1}}}},
    "a logarithm of zero": {**TUNING, "space": {"ucb_cs": {"selector.discount": {"low": 0, "high": 1, "log": True}}}},
    "without high": {**TUNING, "space": {"ucb_cs": {"selector.discount": {"low": 0}}}},
}
TUNED = {
    "a list": "- a\n",
    "one word": "a\n",
    "conflict markers": CONFLICT,
    "a row of nothing": "ucb_cs:\n",
    "a row that lacks facts": "ucb_cs: {words: [selector.discount=0.5]}\n",
    "trials of nothing": "ucb_cs: {words: [], trials: 1, seeds: [7], cells: [equal], metric: server_val/acc, value: 1,"
    " default: 1, tried: [{words: []}], spare: []}\n",
}


def _write_yaml(changes: Mapping[str, Any], folder: Path) -> None:
    text = yaml.safe_dump({**SMALL_STUDY, **changes}, sort_keys=False)
    (folder / "study.yaml").write_text(text)


def _write_text(content: str | bytes | None, how: str, folder: Path) -> None:
    path = folder / "study.yaml"
    file_bytes = path.read_bytes()
    data = (
        file_bytes[: len(file_bytes) // 3]
        if content is None
        else content.encode()
        if isinstance(content, str)
        else content
    )
    path.write_bytes(file_bytes + data if how in ("seeds twice", "conflict markers in its middle") else data)


def _drop(name: str, folder: Path) -> None:
    fields = {key: value for key, value in SMALL_STUDY.items() if key != name}
    (folder / "study.yaml").write_text(yaml.safe_dump(fields, sort_keys=False))


def _definitions() -> Iterator[Case]:
    for fault_name, content in TEXTS.items():
        yield case(f"study.yaml: {fault_name}", partial(_write_text, content, fault_name), "study.yaml")
    for fault_name in ("a folder", "a link to nothing", "a named pipe", "missing"):
        yield case(f"study.yaml: {fault_name}", on("study.yaml", DAMAGES[fault_name]), "study")
    for name in ("title", "question", "baseline", "selectors", "cells", "seeds"):
        yield case(f"study.yaml: no {name}", partial(_drop, name), "study.yaml", f"{name} is missing")
    yield case("study.yaml: an unknown option", partial(_write_yaml, {"sedes": [1]}), "study.yaml", "sedes")
    for option, values in OPTIONS.items():
        for fault_name, value in values.items():
            yield case(
                f"study.yaml: {option} {fault_name}", partial(_write_yaml, {option: value}), "study.yaml", option
            )
    for fault_name, value in TUNES.items():
        yield case(f"study.yaml: tune {fault_name}", partial(_write_yaml, {"tune": value}), "study.yaml", "tune")
    for fault_name, text in TUNED.items():
        yield case(f"tuned.yaml: {fault_name}", put("tuned.yaml", text), "tuned.yaml")


def cases() -> list[Case]:
    """List the cases: definitions, then tuned rows."""
    return list(_definitions())
