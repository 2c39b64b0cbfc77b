"""Wrong definitions of studies: `study.yaml` or `tuned.yaml` is rejected with its name and the option in it."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from hostile.damage import DAMAGES
from hostile.harness import Case
from hostile.study_files import CONFLICT, case, damage_file, write_text
from study.small_study import SMALL_STUDY, TUNING

SETTING: dict[str, Any] = {"overrides": ["heterogeneity=iid"]}
TEXTS: dict[str, Any] = {
    "emptied": "",
    "a comment only": "# nothing\n",
    "a list": "- title\n- seeds\n",
    "one word": "study\n",
    "a number": "3\n",
    "zeros": "\0" * 200,
    "a tab for a space": "settings:\n\tequal: 1\n",
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
    "methods": {
        "null": None,
        "a text": "flash",
        "a number": 3,
        "with null": [None],
        "with a number": [3],
        "with a list": [["flash"]],
        "with one twice": ["flash", "flash"],
        "with the baseline": ["random"],
        "with overrides without a value": [{"mine": ["selector"]}],
        "with a seed": [{"mine": ["selector=flash", "seed=1"]}],
    },
    "oracles": {"a text": "oracle_clean", "a method again": ["round_robin"], "with a number": [1]},
    "references": {"a text": "full", "a method again": ["round_robin"], "options": {"full": 1}},
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
    "verdict": {
        "a list": [1],
        "a number": 0.05,
        "an unknown option": {"alfa": 0.05},
        "alpha 0": {"alpha": 0},
        "alpha 2": {"alpha": 2},
        "alpha a text": {"alpha": "small"},
        "minimum negative": {"min_difference": -1},
        "minimum not a number": {"min_difference": float("nan")},
        "one seed": {"min_seeds": 1},
        "half a seed": {"min_seeds": 2.5},
        "detectable difference 0": {"detectable_difference": 0},
        "detectable difference infinite": {"detectable_difference": float("inf")},
    },
    "seed_counts": {
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
    "settings": {
        "null": None,
        "none": {},
        "a list": [SETTING],
        "a text": "iid",
        "a setting of nothing": {"equal": None},
        "a setting of a list": {"equal": ["heterogeneity=iid"]},
        "without overrides": {"equal": {"label": "a"}},
        "overrides a text": {"equal": {"overrides": "heterogeneity=iid"}},
        "overrides without a value": {"equal": {"overrides": ["heterogeneity"]}},
        "overrides with a seed": {"equal": {"overrides": ["seed=3"]}},
        "overrides that methods replace": {"equal": {"overrides": ["selector=powd"]}},
        "an unknown option": {"equal": {**SETTING, "lable": "a"}},
        "label a number": {"equal": {**SETTING, "label": 3}},
        "label empty": {"equal": {**SETTING, "label": " "}},
        "two of one label": {"a": {**SETTING, "label": "x"}, "b": {**SETTING, "label": "x"}},
        "heterogeneity a list": {"equal": {**SETTING, "heterogeneity_kind": ["a"]}},
        "target a text": {"equal": {**SETTING, "target": "high"}},
        "target not a number": {"equal": {**SETTING, "target": float("nan")}},
        "bounds a list": {"equal": {**SETTING, "bounds": ["clean"]}},
        "bounds of a text": {"equal": {**SETTING, "bounds": {"clean": "label_noise=none"}}},
        "bounds without a value": {"equal": {**SETTING, "bounds": {"clean": ["label_noise"]}}},
        "methods a text": {"equal": {**SETTING, "methods": "round_robin"}},
        "methods unknown": {"equal": {**SETTING, "methods": ["flash"]}},
        "methods none": {"equal": {**SETTING, "methods": []}},
        "methods twice": {"equal": {**SETTING, "methods": ["round_robin", "round_robin"]}},
    },
}
SPACE = {"selector.discount": {"low": 0.0, "high": 1.0}}
TUNING_STUDY: dict[str, Any] = {
    "a list": [TUNING],
    "without trials": {name: TUNING[name] for name in TUNING if name != "trials"},
    "no trials": {**TUNING, "trials": 0},
    "an unknown option": {**TUNING, "trails": 4},
    "the study's seeds": {**TUNING, "seeds": [0, 7]},
    "seeds a number": {**TUNING, "seeds": 7},
    "unknown settings": {**TUNING, "settings": ["other"]},
    "no settings": {**TUNING, "settings": []},
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
TUNING_CASES = {
    "a list": "- a\n",
    "one word": "a\n",
    "conflict markers": CONFLICT,
    "a row of nothing": "ucb_cs:\n",
    "a row that lacks facts": "ucb_cs: {overrides: [selector.discount=0.5]}\n",
    "trials of nothing": "ucb_cs: {overrides: [], trials: 1, seeds: [7], settings: [equal], metric: server_val/acc,"
    " value: 1, default: 1, tried: [{overrides: []}], spare: []}\n",
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
        yield case(f"study.yaml: {fault_name}", damage_file("study.yaml", DAMAGES[fault_name]), "study")
    for name in ("title", "question", "baseline", "methods", "settings", "seeds"):
        yield case(f"study.yaml: no {name}", partial(_drop, name), "study.yaml", f"{name} is missing")
    yield case("study.yaml: an unknown option", partial(_write_yaml, {"sedes": [1]}), "study.yaml", "sedes")
    for option, values in OPTIONS.items():
        for fault_name, value in values.items():
            yield case(
                f"study.yaml: {option} {fault_name}", partial(_write_yaml, {option: value}), "study.yaml", option
            )
    for fault_name, value in TUNING_STUDY.items():
        yield case(f"study.yaml: tune {fault_name}", partial(_write_yaml, {"tune": value}), "study.yaml", "tune")
    for fault_name, text in TUNING_CASES.items():
        yield case(f"tuned.yaml: {fault_name}", write_text("tuned.yaml", text), "tuned.yaml")


def cases() -> list[Case]:
    """List the cases: definitions, then tuned rows."""
    return list(_definitions())
