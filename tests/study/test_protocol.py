"""A level of the protocol: the page's numbers from given results, the leaderboard, and files that are rejected."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from config_options import CONFIGS, ROOT
from fedcohort.errors import OptionError
from fedcohort.study.protocol import load_protocol_level
from fedcohort.study.protocol_file import format_protocol, read_protocol
from fedcohort.study.protocol_page import format_page, make_leaderboard
from fedcohort.study.runner import StudyRunner
from study.small_study import make_results, write_study

SETTINGS = {
    name: {"overrides": [f"heterogeneity={name}"], "label": f"{name} clients"} for name in ("iid", "noise_bimodal")
}
LEVELS = {
    "quick": [{"study": "tiny", "settings": None, "seeds": None}],
    "other": [{"study": "tiny", "settings": ["iid"], "seeds": [0]}],
}
BASELINE = [0.50, 0.50, 0.50]
POWD = {"iid": [0.51, 0.52, 0.53], "noise_bimodal": [0.44, 0.46, 0.45]}


def write_file(
    folder: Path, results: Mapping[str, Sequence[float]] = POWD, selector: str = "powd", level: str = "quick"
) -> Path:
    """Write the file of a method with these results by setting; the reference has 3 points more than the baseline."""
    study = write_study(folder / "studies" / "tiny", settings=SETTINGS, seeds=[0, 1, 2])
    (folder / "studies" / "protocol.yaml").write_text(yaml.safe_dump(LEVELS))
    (part,) = load_protocol_level(study.folder.parent, level, selector, CONFIGS)
    values_by_method = {
        cell: {"random": BASELINE, selector: values, f"same_bytes:{selector}": [value + 0.03 for value in BASELINE]}
        for cell, values in results.items()
    }
    stored = make_results(part.study, values_by_method)
    for (_, method, _), row in stored.rows.items():
        row |= {"rounds": 10, "bytes": 1e6 if method == "random" else 2e6, "versions": "{}"}
        row["config_hash"] = method
    runner = StudyRunner(part.study, stored, CONFIGS, folder / "logs", False, lambda line: None)
    runs = runner.find_progress(part.list_conditions(), part.seeds).runs
    path = folder / f"{selector}_{level}.json"
    path.write_text(format_protocol(level, [(part, stored, runs)]))
    return path


def test_the_page_has_the_differences_of_the_runs(tmp_path: Path) -> None:
    """The numbers follow from t with 2 degrees of freedom, whose p is 1 - |t| / sqrt(2 + t^2).

    iid: 1, 2 and 3 points, t = 2 sqrt(3), p = 1 - sqrt(12 / 14) = 0.074. noise_bimodal: -6, -4 and -5 points,
    t = -5 sqrt(3), p = 1 - sqrt(75 / 77) = 0.0131, which Holm doubles. The half width is 4.303 / sqrt(3) = 2.48.
    The mean over settings is -2.5, -1 and -1, t = -3, p = 1 - 3 / sqrt(11) = 0.095. At equal bytes all are 3 points
    lower.
    """
    page = format_page(read_protocol(write_file(tmp_path), tmp_path / "studies"))
    assert page.startswith("# powd: quick protocol\n")
    assert "is noise_bimodal clients (-5.0 [-7.5, -2.5] points) at equal rounds or time, and noise_bimodal" in page
    cost = "2.00 × bytes"
    assert f"| iid clients | 50.0 [50.0, 50.0] | +2.0 [-0.5, 4.5] | 0.074 | -1.0 [-3.5, 1.5] | 0.225 | {cost} |" in page
    noisy = "| noise_bimodal clients | 50.0 [50.0, 50.0] | -5.0 [-7.5, -2.5] | 0.026 | -8.0 [-10.5, -5.5] | 0.010 |"
    assert f"{noisy} {cost} |" in page
    mean = "at equal rounds or time: -1.5 [-3.7, 0.7] points, p = 0.095; significantly better in 0 and worse in 1 of"
    assert mean in page
    assert "at equal bytes: -4.5 [-6.7, -2.3] points, p = 0.012" in page
    assert "| tiny | 2 | 0, 1, 2 | test/acc |" in page
    assert "- commit c0ffee, processor not known" in page


def test_a_diverged_method_is_named(tmp_path: Path) -> None:
    results = {**POWD, "iid": [0.51, math.nan, 0.53]}
    page = format_page(read_protocol(write_file(tmp_path, results), tmp_path / "studies"))
    assert "**It diverged in iid clients.**" in page


def test_the_leaderboard_is_sorted_and_rejects_files_that_differ(tmp_path: Path) -> None:
    better = {name: [value + 0.1 for value in values] for name, values in POWD.items()}
    paths = [write_file(tmp_path), write_file(tmp_path, better, "oort")]
    files = [read_protocol(path, tmp_path / "studies") for path in paths]
    table = make_leaderboard(files)
    assert [row["method"] for _, row in table.frame.iterrows()] == ["oort", "powd"]
    assert table.frame["mean difference, equal rounds or time"].tolist() == ["+8.5 [6.3, 10.7]▲", "-1.5 [-3.7, 0.7]"]
    assert table.frame["worst, equal bytes"].tolist() == [
        "+2.0 (noise_bimodal clients)",
        "-8.0 (noise_bimodal clients)",
    ]
    assert table.frame["worse in, equal bytes"].tolist() == [0, 1]
    assert table.frame["bytes (ratio)"].tolist() == ["2.00", "2.00"]

    other_file = read_protocol(write_file(tmp_path, selector="oort", level="other"), tmp_path / "studies")
    with pytest.raises(OptionError, match=r"oort_other.json is of the level other, and .*powd_quick.json of quick"):
        make_leaderboard([files[0], other_file])
    changed = edit(paths[1], lambda content: content["runs"][0].update(config_hash="x"))
    with pytest.raises(OptionError, match=r"oort_quick.json: the baseline has other options than in .*powd"):
        make_leaderboard([files[0], read_protocol(changed, tmp_path / "studies")])


def edit(path: Path, change: Callable[[Any], Any]) -> Path:
    """Change the content of a file of the protocol."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


CODE = "client._target_=os.system"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.update(format=2), "format must be 1, the format of this version, got 2"),
        (lambda content: content.update(level="huge"), "level must be one of other, quick, got 'huge'"),
        (lambda content: content.update(level=["quick"]), "level must be one of other, quick"),
        (lambda content: content.update(selector="../x"), "selector must be letters, digits and underscores"),
        (
            lambda content: content.update(selector="random"),
            "selector must be no baseline, oracle or reference of tiny",
        ),
        (lambda content: content.update(more=1), "there is no option 'more'"),
        (lambda content: content.update(runs={}), "runs must be a list"),
        (lambda content: content["overrides"].update(tiny=[CODE]), "overrides.tiny: .* names code"),
        (lambda content: content["overrides"].update(tiny=["selector=flash"]), "overrides must be those of this copy"),
        (lambda content: content["runs"][0]["overrides"].append(CODE), "runs.0.overrides: .* names code"),
        (lambda content: content["runs"][0]["overrides"].append("rounds=9"), "the overrides must be .*rounds=9"),
        (lambda content: content["runs"][0].update(study="../x"), "runs.0.study must be one of tiny, got '../x'"),
        (lambda content: content["runs"][0].update(late=1.5), r"runs.0.late must be a number in \[0, 1\]"),
        (lambda content: content["runs"][0].update(late="1"), "runs.0.late must be of the type float64, got '1'"),
        (lambda content: content["runs"][0].update(seed=True), "runs.0.seed must be of the type int64, got True"),
        (lambda content: content["runs"][0].update(bytes=-1.0), r"runs.0.bytes must be a number in \[0, inf\)"),
        (
            lambda content: content["runs"][0].update(seed=7),
            "runs: tiny iid random 0: the overrides must be .* got None",
        ),
        (lambda content: content["runs"][0].update(versions="["), "runs.0.versions must be versions by name, as JSON"),
        (lambda content: content["runs"][0].update(versions="[]"), "runs.0.versions must be versions by name, as JSON"),
        (
            lambda content: content["runs"][0].update(versions='{"\\u001b": ""}'),
            "runs.0.versions must be versions by name, as JSON",
        ),
        (lambda content: content["runs"].pop(), "the overrides must be .* got None"),
        (lambda content: content["runs"][0].pop("commit"), "runs.0.commit is missing"),
    ],
)
def test_an_invalid_protocol_file_is_rejected(change: Callable[[Any], Any], message: str, tmp_path: Path) -> None:
    path = edit(write_file(tmp_path), change)
    with pytest.raises(OptionError, match=message) as error:
        read_protocol(path, tmp_path / "studies")
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000, "\udcff"])
def test_a_file_that_is_no_json_object_is_rejected(content: str, tmp_path: Path) -> None:
    path = write_file(tmp_path)
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(OptionError, match=r"powd_quick.json"):
        read_protocol(path, tmp_path / "studies")


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            [{"study": "tiny", "settings": ["x"], "seeds": None}],
            "quick.0.settings must be a list of one or more of iid",
        ),
        ([{"study": "tiny", "settings": None, "seeds": [-1]}], "quick.0.seeds must be a list of integers"),
        ([{"study": "tiny", "settings": None}], "quick.0.seeds is missing"),
        ([{"study": "tiny", "cells": None, "seeds": None}], "quick.0: cells is called settings now: use the new name"),
        ([], "quick must be a list of one or more nodes {study, settings, seeds}"),
        ([{"study": "nope", "settings": None, "seeds": None}], "has no study 'nope'"),
    ],
)
def test_an_unknown_protocol_level_is_rejected(node: object, message: str, tmp_path: Path) -> None:
    write_study(tmp_path / "tiny", settings=SETTINGS)
    (tmp_path / "protocol.yaml").write_text(yaml.safe_dump({"quick": node}))
    with pytest.raises(OptionError, match=rf"protocol.yaml: .*{message}"):
        load_protocol_level(tmp_path, "quick", "powd")


def test_the_levels_of_the_repository_are_valid() -> None:
    """docs/protocol.md gives these numbers."""
    parts = {
        level: load_protocol_level(ROOT / "studies", level, "flash", CONFIGS) for level in ("quick", "standard", "full")
    }
    (quick,), (standard,) = parts["quick"], parts["standard"]
    assert (len(quick.settings), len(quick.seeds)) == (4, 3)
    assert set(quick.seeds) < set(standard.seeds)
    assert list(standard.settings) == list(standard.study.settings)
    assert [part.study.name for part in parts["full"]] == ["plateau_digits", "auto_unseen"]
