"""Raw files of LEAF that `fedcohort prepare` must reject, or take with a notice.

After each case the check looks at what the command left: a rejected case leaves no table, and no case changes a file
that was there before. `image_preparations.py` has the kinds of images, `prepare_targets.py` the folders to write to.
"""

import json
import os
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fedcohort.command import line
from hostile.forked import fork
from hostile.harness import Answer, Case

Build = Callable[[Path], object]
LIMIT_S = 30


def prepare(kind: str, folder: Path, build: Build, *options: str, source: str = "raw", target: str = "made") -> Answer:
    """Build the source in `folder`/raw, note what is there, and run `fedcohort prepare`."""
    (folder / "raw").mkdir()
    build(folder / "raw")
    (folder / ".before").write_text(json.dumps(snapshot(folder)))
    arguments = [
        "prepare",
        kind,
        str(folder / source) if source else "",
        str(folder / target) if target else "",
        *options,
    ]
    return fork(lambda: line.main(arguments), LIMIT_S)


def snapshot(folder: Path) -> dict[str, str]:
    """Name and content of each file and link below `folder`, apart from the note itself."""
    names = sorted(os.path.join(root, name) for root, _, files in os.walk(folder) for name in files)
    return {name: content(Path(name)) for name in names if not name.endswith(".before")}


def content(path: Path) -> str:
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    return str(zlib.crc32(path.read_bytes())) if path.is_file() else "special"


def damage(folder: Path, accepted: bool) -> str:
    """Return which earlier file was changed, or which table a rejected source left."""
    before, after = json.loads((folder / ".before").read_text()), snapshot(folder)
    changed = [name for name, text in before.items() if after.get(name) != text]
    tables = (
        [] if accepted else [n for n in set(after) - set(before) if n.endswith(".parquet") and "unfinished" not in n]
    )
    return f"{changed[0]} was changed" if changed else f"{tables[0]} was written" if tables else ""


def case(name: str, kind: str, build: Build, *expected: str, accepted: bool = False, **case_options: Any) -> Case:
    options = case_options.pop("options", ())
    return Case(
        f"{kind}: {name}",
        lambda folder: prepare(kind, folder, build, *options, **case_options),
        expected,
        accepted,
        lambda folder: damage(folder, accepted),
    )


# LEAF


def raw_json(folder: Path, content: object, name: str = "train/a.json") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))


def document(**changes: object) -> dict[str, object]:
    """Return LEAF's document of two users, with other values for some of its keys."""
    users = {"u": {"x": [[1.0, 2.0]], "y": [0]}, "v": {"x": [[3.0, 4.0], [5.0, 6.0]], "y": [1, 0]}}
    return {"users": ["u", "v"], "num_samples": [1, 2], "user_data": users, **changes}


def user(x: object, y: object) -> dict[str, object]:
    return {"users": ["u"], "num_samples": [len(y) if isinstance(y, list) else 0], "user_data": {"u": {"x": x, "y": y}}}


def leaf_contents() -> Mapping[str, tuple[object, str]]:
    """Contents of train/a.json and a text of the message."""
    valid_json = json.dumps(document())
    return {
        "empty file": ("", "is not valid JSON, or was truncated"),
        "cut off": (valid_json[:-20], "is not valid JSON, or was truncated"),
        "text behind the end": (valid_json + "x", "is not valid JSON, or was truncated"),
        "byte order mark": (b"\xef\xbb\xbf" + valid_json.encode(), "is not valid JSON"),
        "UTF-16": (valid_json.encode("utf-16"), "is not valid JSON"),
        "Latin-1 name": (valid_json.replace('"u"', '"Zoë"').encode("latin1"), "is not valid JSON"),
        "zero bytes": (b"\0" * 100, "is not valid JSON"),
        "gzip": (b"\x1f\x8b\x08" + bytes(60), "is not valid JSON"),
        "nested too deep": ("[" * 200_000, "is not valid JSON"),
        "single quotes": (valid_json.replace('"', "'"), "is not valid JSON"),
        "number of 5000 digits": (valid_json.replace("5.0", "9" * 5000), "is not valid JSON"),
        "a list": ([1], "is not a file of LEAF"),
        "a text": ('"x"', "is not a file of LEAF"),
        "null": ("null", "is not a file of LEAF"),
        "no users": ({"user_data": {}}, "is not a file of LEAF"),
        "users an object": (document(users={"u": 1}), "is not a file of LEAF"),
        "user_data a list": (document(user_data=[1]), "is not a file of LEAF"),
        "users empty": (document(users=[], num_samples=[], user_data={}), "holds no samples"),
        "user listed twice": (
            document(users=["u", "u", "v"], num_samples=[1, 1, 2]),
            "once, by name; 'u' is wrong",
        ),
        "user not listed": (document(users=["u"], num_samples=[1]), "'v' is wrong"),
        "user without data": (document(users=["u", "v", "w"], num_samples=[1, 2, 0]), "'w' is wrong"),
        "users are numbers": (document(users=[1, 2]), "once, by name"),
        "users are lists": (document(users=[["u"], ["v"]]), "once, by name"),
        "user null": (document(users=["u", None]), "once, by name"),
        "user without a name": (valid_json.replace('"u"', '" "'), "once, by name"),
        "lone surrogate in a name": (valid_json.replace('"u"', '"\\ud800"'), "surrogates not allowed"),
        "repeated user key": (
            valid_json.replace('"v": {', '"u": {"x": [[9.0, 9.0]], "y": [1]}, "v": {'),
            "occurs twice",
        ),
        "repeated x": (valid_json.replace('"y": [0]', '"x": [[7.0, 7.0]], "y": [0]'), "occurs twice"),
        "repeated user_data": (valid_json[:-1] + ', "user_data": {"u": {"x": [], "y": []}}}', "occurs twice"),
        "num_samples too large": (document(num_samples=[2, 2]), "num_samples says 2"),
        "num_samples too short": (document(num_samples=[1]), "num_samples must be a list of 2"),
        "num_samples too long": (document(num_samples=[1, 2, 3]), "num_samples must be a list of 2"),
        "num_samples an object": (document(num_samples={"u": 1}), "num_samples must be a list of 2"),
        "num_samples texts": (document(num_samples=["1", "2"]), "num_samples says 1"),
        "num_samples null inside": (document(num_samples=[None, 2]), "num_samples says None"),
        "more x than y": (user([[1.0], [2.0]], [0]), "has 2 x and 1 y"),
        "x an object": (user({"a": 1}, [0]), "has no lists x and y"),
        "y missing": ({"users": ["u"], "num_samples": [1], "user_data": {"u": {"x": [[1]]}}}, "has no lists x and y"),
        "data a list": (document(user_data={"u": [1], "v": [2]}), "has no lists x and y"),
        "all users empty": (user([], []), "holds no samples"),
        "NaN input": (user([[float("nan"), 1.0]], [0]), "numbers that float32 can hold, but holds nan"),
        "infinite input": (user([[float("inf"), 1.0]], [0]), "numbers that float32 can hold, but holds inf"),
        "input beyond float64": (valid_json.replace("5.0", "1e999"), "holds inf"),
        "input beyond float32": (user([[1e39]], [0]), "holds 1e+39"),
        "input of 400 digits": (valid_json.replace("5.0", "9" * 400), "float32 can hold"),
        "input null": (user([[1.0, None]], [0]), "but holds None"),
        "input a truth value": (user([[True, False]], [0]), "but holds True"),
        "input a text among numbers": (user([[1.0, "2"]], [0]), "x must hold texts, or lists of numbers"),
        "inputs nested": (user([[[1.0]]], [0]), "x must hold texts, or lists of numbers"),
        "inputs scalars": (user([1.0, 2.0], [0, 1]), "must hold texts, or lists of numbers"),
        "inputs objects": (user([{"a": 1}], [0]), "must hold texts, or lists of numbers"),
        "inputs null": (user([None], [0]), "must hold texts, or lists of numbers"),
        "inputs of two lengths": (user([[1.0], [1.0, 2.0]], [0, 1]), "has 2 numbers, but the first has 1"),
        "inputs of no length": (user([[]], [0]), "has 0 numbers"),
        "texts after lists": (user([[1.0], "a"], [0, 1]), "must each have one type"),
        "lists after texts": (user(["a", [1.0]], [0, 1]), "must each have one type"),
        "images' names": (user(["1.png"], [0]), "fedcohort prepare celeba"),
        "lone surrogate in a text": (
            json.dumps(user(["a"], [0])).replace('"a"', '"\\udfff"'),
            "surrogates not allowed",
        ),
        "label NaN": (user([[1.0]], [float("nan")]), "has label nan"),
        "label infinite": (user([[1.0]], [float("inf")]), "has label inf"),
        "label a fraction": (user([[1.0]], [0.5]), "has label 0.5"),
        "label null": (user([[1.0], [2.0]], [1, None]), "has label None"),
        "label a truth value": (user([[1.0], [2.0]], [0, True]), "has label True"),
        "label beyond int64": (user([[1.0]], [2**63]), "must each have one type"),
        "label 1e300": (user([[1.0]], [1e300]), "must each have one type"),
        "labels of two kinds": (user([[1.0], [2.0]], [0, "a"]), "must each have one type"),
        "label an object after a number": (user([[1.0], [2.0]], [0, {"target_tokens": []}]), "has label"),
        "targets no words": (user([[1.0]], [[1, 2]]), "labels are whole numbers, texts, or lists of texts"),
        "comment without targets": (user([[["a"]]], [{"subreddit": "s"}]), "has no lists x and y.target_tokens"),
        "comment with fewer targets": (
            user([[["a", "b"]]], [{"target_tokens": [["b"]]}]),
            "and targets in lists of [1]",
        ),
        "comment's words numbers": (user([[[1, 2]]], [{"target_tokens": [["a", "b"]]}]), "must each have one type"),
        "comment's targets null": (
            user([[["a"]]], [{"target_tokens": [[None]]}]),
            "labels are whole numbers, texts, or lists of texts",
        ),
    }


def two_files(folder: Path, second: Mapping[str, object], name: str = "train/b.json") -> None:
    raw_json(folder, document())
    raw_json(folder, second, name)


def pipe(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


def link(path: Path, target: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(str(target))
    return path


def leaf_files() -> list[Case]:
    second = {"users": ["w"], "num_samples": [1], "user_data": {"w": {"x": [[1.0, 2.0]], "y": ["text"]}}}
    return [
        case("user in two files", "leaf", lambda raw: two_files(raw, document()), "'u' has samples in two files"),
        case("files of two kinds", "leaf", lambda raw: two_files(raw, second), "all parts must have"),
        case("no file", "leaf", lambda raw: None, "has no JSON files"),
        case("folders alone", "leaf", lambda raw: (raw / "train" / "sub").mkdir(parents=True), "has no JSON files"),
        case("other case of .JSON", "leaf", lambda raw: raw_json(raw, document(), "train/a.JSON"), "has no JSON files"),
        case("a pipe", "leaf", lambda raw: pipe(raw / "train" / "a.json"), "neither a file nor a folder"),
        case("a folder a.json", "leaf", lambda raw: (raw / "train" / "a.json").mkdir(parents=True), "is a folder"),
        case("a link out", "leaf", lambda raw: link(raw / "train" / "a.json", "/etc/passwd"), "leads out"),
        case("a device", "leaf", lambda raw: link(raw / "train" / "a.json", "/dev/zero"), "leads out"),
        case("a link to itself", "leaf", lambda raw: link(raw / "train" / "a.json", "a.json"), "can't be read"),
        case("a broken link", "leaf", lambda raw: link(raw / "train" / "a.json", "b.json"), "has no train/a.json"),
        case("train a link out", "leaf", lambda raw: link(raw / "train", "/etc"), "leads out"),
        case("size=", "leaf", lambda raw: raw_json(raw, document()), "size= resizes image files", options=("size=8",)),
        case("name in Latin-1", "leaf", lambda raw: bad_name(raw, document()), "is no UTF-8 text"),
        case(
            "files beside",
            "leaf",
            lambda raw: two_files(raw, second, "train/b.txt"),
            "left out, the first is",
            "b.txt",
            accepted=True,
        ),
        case(
            "JSON beside train",
            "leaf",
            lambda raw: two_files(raw, second, "b.json"),
            "left out, the first is",
            accepted=True,
        ),
    ]


def bad_name(folder: Path, content: object) -> None:
    (folder / "train").mkdir()
    with open(os.fsencode(folder / "train") + b"/\xe9.json", "w") as stream:
        json.dump(content, stream)


def cases() -> list[Case]:
    """List the cases: contents of LEAF's files, then their folder."""
    contents = [
        case(name, "leaf", partial(raw_json, content=content), text)
        for name, (content, text) in leaf_contents().items()
    ]
    return [*contents, *leaf_files()]
