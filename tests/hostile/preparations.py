"""Raw files and folders that `fedcohort prepare` must reject, or take with a notice, over its five kinds.

After each case the check looks at what the command left: a rejected case leaves no table, and no case changes a file
that was there before.
"""

import json
import os
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from fedcohort.command import line
from hostile.forked import fork
from hostile.harness import Answer, Case
from raw_toy import celeba, save, waterbirds

Build = Callable[[Path], object]
LIMIT_S = 30


def prepare(kind: str, folder: Path, build: Build, *options: str, source: str = "raw", target: str = "made") -> Answer:
    """Build the source in `folder`/raw, note what is there, and run `fedcohort prepare`."""
    (folder / "raw").mkdir()
    build(folder / "raw")
    (folder / ".before").write_text(json.dumps(snapshot(folder)))
    words = ["prepare", kind, str(folder / source) if source else "", str(folder / target) if target else "", *options]
    return fork(lambda: line.main(words), LIMIT_S)


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
    tables = [] if accepted else [n for n in set(after) - set(before) if n.endswith(".parquet")]
    return f"{changed[0]} was changed" if changed else f"{tables[0]} was written" if tables else ""


def case(name: str, kind: str, build: Build, *expected: str, accepted: bool = False, **words: Any) -> Case:
    options = words.pop("options", ())
    return Case(
        f"{kind}: {name}",
        lambda folder: prepare(kind, folder, build, *options, **words),
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
    good = json.dumps(document())
    return {
        "empty file": ("", "is not valid JSON, or was truncated"),
        "cut off": (good[:-20], "is not valid JSON, or was truncated"),
        "text behind the end": (good + "x", "is not valid JSON, or was truncated"),
        "byte order mark": (b"\xef\xbb\xbf" + good.encode(), "is not valid JSON"),
        "UTF-16": (good.encode("utf-16"), "is not valid JSON"),
        "Latin-1 name": (good.replace('"u"', '"Zoë"').encode("latin1"), "is not valid JSON"),
        "zero bytes": (b"\0" * 100, "is not valid JSON"),
        "gzip": (b"\x1f\x8b\x08" + bytes(60), "is not valid JSON"),
        "nested too deep": ("[" * 200_000, "is not valid JSON"),
        "single quotes": (good.replace('"', "'"), "is not valid JSON"),
        "number of 5000 digits": (good.replace("5.0", "9" * 5000), "is not valid JSON"),
        "a list": ([1], "is not LEAF's"),
        "a text": ('"x"', "is not LEAF's"),
        "null": ("null", "is not LEAF's"),
        "no users": ({"user_data": {}}, "is not LEAF's"),
        "users an object": (document(users={"u": 1}), "is not LEAF's"),
        "user_data a list": (document(user_data=[1]), "is not LEAF's"),
        "users empty": (document(users=[], num_samples=[], user_data={}), "holds no samples"),
        "user listed twice": (
            document(users=["u", "u", "v"], num_samples=[1, 1, 2]),
            "once, by name, which fails for 'u'",
        ),
        "user not listed": (document(users=["u"], num_samples=[1]), "fails for 'v'"),
        "user without data": (document(users=["u", "v", "w"], num_samples=[1, 2, 0]), "fails for 'w'"),
        "users are numbers": (document(users=[1, 2]), "once, by name"),
        "users are lists": (document(users=[["u"], ["v"]]), "once, by name"),
        "user null": (document(users=["u", None]), "once, by name"),
        "user without a name": (good.replace('"u"', '" "'), "once, by name"),
        "lone surrogate in a name": (good.replace('"u"', '"\\ud800"'), "surrogates not allowed"),
        "repeated user key": (good.replace('"v": {', '"u": {"x": [[9.0, 9.0]], "y": [1]}, "v": {'), "is there twice"),
        "repeated x": (good.replace('"y": [0]', '"x": [[7.0, 7.0]], "y": [0]'), "is there twice"),
        "repeated user_data": (good[:-1] + ', "user_data": {"u": {"x": [], "y": []}}}', "is there twice"),
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
        "NaN input": (user([[float("nan"), 1.0]], [0]), "numbers that float32 can hold, and holds nan"),
        "infinite input": (user([[float("inf"), 1.0]], [0]), "numbers that float32 can hold, and holds inf"),
        "input beyond float64": (good.replace("5.0", "1e999"), "holds inf"),
        "input beyond float32": (user([[1e39]], [0]), "holds 1e+39"),
        "input of 400 digits": (good.replace("5.0", "9" * 400), "float32 can hold"),
        "input null": (user([[1.0, None]], [0]), "and holds None"),
        "input a truth value": (user([[True, False]], [0]), "and holds True"),
        "input a text among numbers": (user([[1.0, "2"]], [0]), "x must hold texts, or lists of numbers"),
        "inputs nested": (user([[[1.0]]], [0]), "x must hold texts, or lists of numbers"),
        "inputs scalars": (user([1.0, 2.0], [0, 1]), "must hold texts, or lists of numbers"),
        "inputs objects": (user([{"a": 1}], [0]), "must hold texts, or lists of numbers"),
        "inputs null": (user([None], [0]), "must hold texts, or lists of numbers"),
        "inputs of two lengths": (user([[1.0], [1.0, 2.0]], [0, 1]), "has 2 numbers, and the first sample 1"),
        "inputs of no length": (user([[]], [0]), "has 0 numbers"),
        "texts after lists": (user([[1.0], "a"], [0, 1]), "not of one kind"),
        "lists after texts": (user(["a", [1.0]], [0, 1]), "not of one kind"),
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
        "label beyond int64": (user([[1.0]], [2**63]), "not of one kind"),
        "label 1e300": (user([[1.0]], [1e300]), "not of one kind"),
        "labels of two kinds": (user([[1.0], [2.0]], [0, "a"]), "not of one kind"),
        "label an object after a number": (user([[1.0], [2.0]], [0, {"target_tokens": []}]), "has label"),
        "targets no words": (user([[1.0]], [[1, 2]]), "labels are whole numbers, texts, or lists of texts"),
        "comment without targets": (user([[["a"]]], [{"subreddit": "s"}]), "has no lists x and y.target_tokens"),
        "comment with fewer targets": (
            user([[["a", "b"]]], [{"target_tokens": [["b"]]}]),
            "and targets in lists of [1]",
        ),
        "comment's words numbers": (user([[[1, 2]]], [{"target_tokens": [["a", "b"]]}]), "not of one kind"),
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
    other = {"users": ["w"], "num_samples": [1], "user_data": {"w": {"x": [[1.0, 2.0]], "y": ["text"]}}}
    return [
        case("user in two files", "leaf", lambda raw: two_files(raw, document()), "'u' has samples in two files"),
        case("files of two kinds", "leaf", lambda raw: two_files(raw, other), "all parts must have"),
        case("no file", "leaf", lambda raw: None, "has no train/*.json"),
        case("folders alone", "leaf", lambda raw: (raw / "train" / "sub").mkdir(parents=True), "has no train/*.json"),
        case(
            "other case of .JSON", "leaf", lambda raw: raw_json(raw, document(), "train/a.JSON"), "has no train/*.json"
        ),
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
            lambda raw: two_files(raw, other, "train/b.txt"),
            "1 left out",
            "b.txt",
            accepted=True,
        ),
        case("JSON beside train", "leaf", lambda raw: two_files(raw, other, "b.json"), "1 left out", accepted=True),
    ]


def bad_name(folder: Path, content: object) -> None:
    (folder / "train").mkdir()
    with open(os.fsencode(folder / "train") + b"/\xe9.json", "w") as stream:
        json.dump(content, stream)


# Where to write


def taken(relative: str, text: str = "mine") -> Build:
    """Return a build of a good source, and of a file of the user's at `relative` to the target's parent."""

    def build(raw: Path) -> None:
        raw_json(raw, document())
        path = raw.parent / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return build


def linked(relative: str, target: str) -> Build:
    def build(raw: Path) -> None:
        raw_json(raw, document())
        (raw.parent / "precious").mkdir()
        (raw.parent / "precious" / "notes.txt").write_text("mine")
        link(raw.parent / relative, raw.parent / target)

    return build


def good(raw: Path) -> Path:
    raw_json(raw, document())
    return raw


def targets() -> list[Case]:
    return [
        case("own draft train.new", "leaf", taken("made/train.new"), "holds train.new"),
        case("own train.parquet", "leaf", taken("made/train.parquet"), "holds train.parquet"),
        case("own train.csv", "leaf", taken("made/train.csv"), "holds train.csv"),
        case("own test.parquet", "leaf", taken("made/test.parquet"), "holds test.parquet"),
        case("own vocabulary.parquet", "leaf", taken("made/vocabulary.parquet"), "holds vocabulary.parquet"),
        case("own vocabulary.new", "leaf", taken("made/vocabulary.new"), "holds vocabulary.new"),
        case("train.parquet a link", "leaf", linked("made/train.parquet", "precious/notes.txt"), "holds train.parquet"),
        case(
            "train.parquet a broken link", "leaf", linked("made/train.parquet", "precious/new"), "holds train.parquet"
        ),
        case("train.new a link", "leaf", linked("made/train.new", "precious/notes.txt"), "holds train.new"),
        case("target a broken link", "leaf", linked("made", "nowhere"), "is not a folder"),
        case("target a file", "leaf", taken("made"), "is not a folder"),
        case("target below a file", "leaf", taken("made"), "Not a directory", target="made/below"),
        case("target the source", "leaf", good, "whose files are read", target="raw"),
        case("target in the source", "leaf", good, "whose files are read", target="raw/made"),
        case("target a link into the source", "leaf", linked("made", "raw"), "whose files are read"),
        case("target a device", "leaf", good, "is not a folder", target="../../../../../../dev/null"),
        case("target without a name", "leaf", good, "an empty text", target=""),
        case("target with a zero byte", "leaf", good, "can't be used as a folder's name", target="ma\0de"),
        case("target of 300 characters", "leaf", good, "name too long", target="m" * 300),
        case("source missing", "leaf", good, "there is no such file or folder", source="rue"),
        case(
            "source a file",
            "leaf",
            taken("file.zip"),
            "this is no folder (archives must be unpacked)",
            source="file.zip",
        ),
        case("source without a name", "leaf", good, "there is no such file or folder", source=""),
        case("source with a zero byte", "leaf", good, "there is no such file or folder", source="r\0w"),
        case("source of 300 characters", "leaf", good, "name too long", source="r" * 300),
        case("source a pipe", "leaf", lambda raw: pipe(raw.parent / "p"), "this is no folder", source="p"),
        case("a third folder", "leaf", good, "type fedcohort prepare", options=("more",)),
        case("an unknown option", "leaf", good, "there is no option 'sizes'", options=("sizes=3",)),
        case("an unknown kind", "lief", good, "the kind must be one of"),
        case("an empty kind", "", good, "the kind must be one of"),
    ]


# Folders of images


def images(raw: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        save(raw / name, number)
    return raw


def overwritten(name: str, content: bytes) -> Build:
    """Return a build of two classes with `content` for one of the images."""

    def build(raw: Path) -> None:
        images(raw, "a/0.png", "b/0.png")
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / name).write_bytes(content)

    return build


def png(width: int, height: int, data: bytes = b"") -> bytes:
    """Return a PNG whose header claims a size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", data or zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    body = (struct.pack(">I", len(c)) + kind + c + struct.pack(">I", zlib.crc32(kind + c)) for kind, c in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def deep_png(raw: Path) -> None:
    images(raw, "a/0.png")
    (raw / "b").mkdir()
    Image.new("I;16", (4, 4)).save(raw / "b" / "0.png")


def image_contents() -> Mapping[str, tuple[bytes, str]]:
    return {
        "an empty image": (b"", "is empty"),
        "a text": (b"hello", "can't be read as an image"),
        "a cut image": (png(4, 4)[:40], "can't be read as an image"),
        "a header alone": (b"\x89PNG\r\n\x1a\n", "can't be read as an image"),
        "a false checksum": (png(4, 4)[:29] + b"xxxx" + png(4, 4)[33:], "can't be read as an image"),
        "a size of no pixels": (png(0, 0), "can't be read as an image"),
        "a size beyond its data": (png(3000, 3000), "can't be read as an image"),
        "a size of 4 gigapixels": (png(2**16, 2**16), "can't be read as an image"),
        "a size of 2^31": (png(2**31 - 1, 1), "can't be read as an image"),
        "data that are not compressed": (png(4, 4, b"abc"), "can't be read as an image"),
        "a web page": (b"<html><body>404</body></html>", "can't be read as an image"),
        "a pointer of Git LFS": (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            "can't be read as an image",
        ),
        "a JPEG's beginning": (b"\xff\xd8\xff\xe0" + bytes(50), "can't be read as an image"),
        "a bitmap's beginning": (b"BM" + bytes(60), "can't be read as an image"),
        "a WebP's beginning": (b"RIFF\x10\0\0\0WEBPVP8 ", "can't be read as an image"),
    }


def imagefolders() -> list[Case]:
    kind = "imagefolder"
    cases = [case(name, kind, overwritten("b/1.png", c), text) for name, (c, text) in image_contents().items()]
    return [
        *cases,
        case("16 bits a pixel", kind, deep_png, "more than 8 bits per pixel"),
        case("no class", kind, lambda raw: None, "has no folders of images"),
        case("images without a class", kind, lambda raw: images(raw, "0.png", "1.png"), "has no folders of images"),
        case("a class without images", kind, lambda raw: (raw / "a").mkdir(), "has no folders of images"),
        case("other files alone", kind, lambda raw: raw_json(raw, "x", "a/b.txt"), "holds no images"),
        case("a class of classes", kind, lambda raw: images(raw, "a/b/0.png"), "holds no images"),
        case("train without classes", kind, lambda raw: images(raw, "train/0.png"), "has no folders of images"),
        case(
            "test without classes", kind, lambda raw: images(raw, "train/a/0.png", "test/0.png"), "test has no folders"
        ),
        case(
            "val and valid", kind, lambda raw: images(raw, "train/a/0.png", "val/a/1.png", "valid/a/1.png"), "keep one"
        ),
        case("a pipe", kind, lambda raw: (images(raw, "a/0.png"), pipe(raw / "a" / "1.png")), "neither a file nor"),
        case("a folder 1.png", kind, lambda raw: images(raw, "a/0.png", "a/1.png/2.png"), "is a folder"),
        case(
            "a link out", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "a/1.png", "/etc/passwd")), "leads out"
        ),
        case("a device", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "a/1.png", "/dev/zero")), "leads out"),
        case("a link to itself", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "a/1.png", "1.png")), "be read"),
        case("a broken link", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "a/1.png", "2.png")), "has no a/1"),
        case("a class a link out", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "b", "/etc")), "leads out"),
        case("a class a link up", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "b", raw.parent)), "leads out"),
        case("a name in Latin-1", kind, bad_image_name, "is no UTF-8 text"),
        case("size=0", kind, lambda raw: images(raw, "a/0.png"), "size must be", options=("size=0",)),
        case("size=-3", kind, lambda raw: images(raw, "a/0.png"), "size must be", options=("size=-3",)),
        case("size=1e3", kind, lambda raw: images(raw, "a/0.png"), "size must be", options=("size=1e3",)),
        case(
            "size of 5000 digits",
            kind,
            lambda raw: images(raw, "a/0.png"),
            "size must be",
            options=("size=" + "9" * 5000,),
        ),
        case("other files beside", kind, overwritten("b/1.gif", b"GIF"), "1 left out", "'1.gif'", accepted=True),
        case("folders in a class", kind, lambda raw: images(raw, "a/0.png", "a/b/1.png"), "'b'", accepted=True),
        case("classes beside train", kind, lambda raw: images(raw, "train/a/0.png", "b/1.png"), "'b'", accepted=True),
    ]


def bad_image_name(raw: Path) -> None:
    images(raw, "a/0.png")
    os.rename(raw / "a" / "0.png", os.fsencode(raw / "a") + b"/\xe9.png")


# CelebA, WaterBirds, Spawrious


def edited(make: Callable[[Path], Path], name: str, change: Callable[[str], str | bytes]) -> Build:
    """Return a build of a good source whose file `name` is changed."""

    def build(raw: Path) -> None:
        file = make(raw) / name
        text = change(file.read_text())
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    return build


def replaced(make: Callable[[Path], Path], name: str, special: Callable[[Path], object]) -> Build:
    def build(raw: Path) -> None:
        file = make(raw) / name
        file.unlink()
        special(file)

    return build


def swap(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


def celebas() -> list[Case]:
    attributes, people, parts = "list_attr_celeba.txt", "identity_CelebA.txt", "list_eval_partition.txt"
    first = "000001.jpg  1 -1"

    def on(file: str, name: str, change: Callable[[str], str | bytes], *texts: str, accepted: bool = False) -> Case:
        return case(f"{file}: {name}", "celeba", edited(celeba, file, change), *texts, accepted=accepted)

    return [
        on(attributes, "empty", lambda text: "", "names no image"),
        on(attributes, "header alone", lambda text: "0\nSmiling Male\n", "names no image"),
        on(attributes, "cut off", lambda text: "\n".join(text.splitlines()[:9]) + "\n", "the first line says '16'"),
        on(attributes, "no count", lambda text: "\n".join(text.splitlines()[1:]), "values of 1 or -1"),
        on(attributes, "an image twice", lambda text: text + first + "\n", "names 000001.jpg, too"),
        on(attributes, "an attribute twice", swap("Smiling Male", "Male Male"), "'Male' is there twice"),
        on(attributes, "attribute image", swap("Smiling", "image"), "'image' is there twice, or has the name"),
        on(attributes, "attribute celeb_id", swap("Smiling", "celeb_id"), "'celeb_id' is there twice, or has"),
        on(attributes, "value 0", swap(first, "000001.jpg 0 -1"), "of 1 or -1"),
        on(attributes, "value missing", swap(first, "000001.jpg -1"), "of 1 or -1"),
        on(attributes, "an image that is not there", swap(first, "zzz.jpg -1 -1"), "zzz.jpg is in no list"),
        on(attributes, "not UTF-8", lambda text: text.encode() + b"\xe9", "is no UTF-8 text"),
        on(attributes, "commas", lambda text: text.replace(" ", ","), "of 1 or -1"),
        on(people, "empty", lambda text: "", "is in no list of identities"),
        on(people, "an image twice", lambda text: text + "000001.jpg 9\n", "names 000001.jpg, too"),
        on(people, "a text", swap("000001.jpg 7", "000001.jpg Ann"), "identity a number, got 'Ann'"),
        on(
            people,
            "identity of 40 digits",
            swap("000001.jpg 7", "000001.jpg " + "9" * 40),
            "identity a number, got '999",
        ),
        on(people, "identity a superscript", swap("000001.jpg 7", "000001.jpg ²"), "identity a number, got '²'"),
        on(people, "three words", swap("000001.jpg 7", "000001.jpg 7 7"), "identity a number, got '7 7'"),
        on(people, "an image more", lambda text: text + "zzz.jpg 9\n", "1 left out", "'zzz.jpg'", accepted=True),
        on(parts, "part 3", swap("000001.jpg 0", "000001.jpg 3"), "part must be 0, 1 or 2, got '3'"),
        on(parts, "an image twice", lambda text: text + "000001.jpg 1\n", "names 000001.jpg, too"),
        case("attributes a pipe", "celeba", replaced(celeba, attributes, os.mkfifo), "neither a file nor a folder"),
        case("identities a folder", "celeba", replaced(celeba, people, Path.mkdir), "Is a directory"),
        case("identities missing", "celeba", replaced(celeba, people, lambda file: None), "has no identity_CelebA.txt"),
        case(
            "an image a pipe",
            "celeba",
            replaced(celeba, "img_align_celeba/000001.jpg", os.mkfifo),
            "neither a file nor",
        ),
        case("an image gone", "celeba", replaced(celeba, "img_align_celeba/000002.jpg", lambda f: None), "has no img_"),
        case("nothing", "celeba", lambda raw: None, "has no img_align_celeba"),
    ]


def all_birds() -> list[Case]:
    name, first = "metadata.csv", "0,000.Bird/bird_0.jpg,1,0,0,"

    def on(title: str, change: Callable[[str], str | bytes], *texts: str, accepted: bool = False) -> Case:
        return case(title, "waterbirds", edited(waterbirds, name, change), *texts, accepted=accepted)

    return [
        on("empty", lambda text: "", "has no column"),
        on("header alone", lambda text: text.splitlines()[0], "names no image"),
        on("no column y", swap(",y,", ",why,"), "has no column 'y'"),
        on("column y twice", swap("place_filename", "y"), "has two columns called 'y'"),
        on("semicolons", lambda text: text.replace(",", ";"), "has no column"),
        on("an image twice", lambda text: text + text.splitlines()[1] + "\n", "names '000.Bird/bird_0.jpg', too"),
        on(
            "an image by another path", lambda t: t + t.splitlines()[1].replace("000.B", "./000.B"), "names './000.Bird"
        ),
        on("y a text", swap(first, "0,000.Bird/bird_0.jpg,yes,0,0,"), "y is 'yes'"),
        on("y 2", swap(first, "0,000.Bird/bird_0.jpg,2,0,0,"), "y is '2'"),
        on("split 9", swap(first, "0,000.Bird/bird_0.jpg,1,9,0,"), "split is '9'"),
        on("a short row", swap(first + "/o/ocean/0.jpg", "0,000.Bird/bird_0.jpg,1"), "split is None"),
        on("a long row", swap(first, first + ",,,"), "more cells than the header"),
        on("no name", swap("000.Bird/bird_0.jpg", ""), "has no (no name)"),
        on("a path out", swap("000.Bird/bird_0.jpg", "../../../../etc/passwd"), "leads out"),
        on("an absolute path", swap("000.Bird/bird_0.jpg", "/etc/passwd"), "leads out"),
        on("a folder for an image", swap("000.Bird/bird_0.jpg", "000.Bird"), "is a folder"),
        on("a zero byte in a name", swap("000.Bird/bird_0.jpg", "a\0b.jpg"), "null byte"),
        on("a name of 300 characters", swap("000.Bird/bird_0.jpg", "a" * 300), "name too long"),
        on("a cell of 200 KB", swap("/o/ocean/0.jpg", "o" * 200_000), "is no CSV"),
        on("an open quote", swap("000.Bird/bird_0.jpg", '"000.Bird/bird_0.jpg'), "is no CSV"),
        on("not UTF-8", lambda text: text.encode() + b"\xe9", "is no UTF-8 text"),
        on("UTF-16", lambda text: text.encode("utf-16"), "is no UTF-8 text"),
        case("metadata a pipe", "waterbirds", replaced(waterbirds, name, os.mkfifo), "neither a file nor a folder"),
        case("metadata a folder", "waterbirds", replaced(waterbirds, name, Path.mkdir), "is a folder"),
        case(
            "metadata a link out",
            "waterbirds",
            replaced(waterbirds, name, lambda f: link(f, "/etc/passwd")),
            "leads out",
        ),
        case("nothing", "waterbirds", lambda raw: None, "has no metadata.csv"),
    ]


def spawrious() -> list[Case]:
    one = "0/snow/corgi/0.png"
    return [
        case("nothing", "spawrious", lambda raw: None, "has no images"),
        case("an unknown place", "spawrious", lambda raw: images(raw, one, "0/moon/corgi/0.png"), "folders here are"),
        case("an unknown breed", "spawrious", lambda raw: images(raw, one, "0/snow/cat/0.png"), "folders here are"),
        case("no breed", "spawrious", lambda raw: images(raw, "0/snow/0.png"), "has no images"),
        case("other files alone", "spawrious", lambda raw: raw_json(raw, "x", "0/snow/corgi/a.txt"), "holds no images"),
        case("a third half", "spawrious", lambda raw: images(raw, one, "2/snow/corgi/0.png"), "'2'", accepted=True),
        case("a pipe", "spawrious", lambda raw: (images(raw, one), pipe(raw / "0/snow/corgi/1.png")), "neither a file"),
        case("half a link out", "spawrious", lambda raw: (images(raw, one), link(raw / "1", "/etc")), "leads out"),
    ]


def cases() -> list[Case]:
    contents = [
        case(name, "leaf", partial(raw_json, content=content), text)
        for name, (content, text) in leaf_contents().items()
    ]
    return [*contents, *leaf_files(), *targets(), *imagefolders(), *celebas(), *all_birds(), *spawrious()]
