"""Folders to which `fedcohort prepare` must not write, and those that it writes to with a notice."""

import json
from pathlib import Path

from hostile.harness import Case
from hostile.preparations import Build, case, document, link, pipe, raw_json


def occupy_target(relative: str, text: str = "mine") -> Build:
    """Return a build of a good source, and of a file of the user's at `relative` to the target's parent."""

    def build(raw: Path) -> None:
        raw_json(raw, document())
        path = raw.parent / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return build


def link_target(relative: str, target: str) -> Build:
    def build(raw: Path) -> None:
        raw_json(raw, document())
        (raw.parent / "precious").mkdir()
        (raw.parent / "precious" / "notes.txt").write_text("mine")
        link(raw.parent / relative, raw.parent / target)

    return build


def write_source(raw: Path) -> Path:
    raw_json(raw, document())
    return raw


def targets() -> list[Case]:
    prepared_json = json.dumps({"plan": "0", "rows": {"train": 1}})
    rows = "rows in train.parquet"
    return [
        case("own folder unfinished", "leaf", occupy_target("made/unfinished/thesis.txt"), rows, accepted=True),
        case("own draft train.new", "leaf", occupy_target("made/train.new"), "holds train.new"),
        case("own train.parquet", "leaf", occupy_target("made/train.parquet"), "holds train.parquet"),
        case("own train.csv", "leaf", occupy_target("made/train.csv"), "holds train.csv"),
        case("own test.parquet", "leaf", occupy_target("made/test.parquet"), "holds test.parquet"),
        case("own vocabulary.parquet", "leaf", occupy_target("made/vocabulary.parquet"), "holds vocabulary.parquet"),
        case("own vocabulary.new", "leaf", occupy_target("made/vocabulary.new"), "holds vocabulary.new"),
        case("own prepared.json", "leaf", occupy_target("made/prepared.json"), "prepared from another source"),
        case(
            "prepared.json of others",
            "leaf",
            occupy_target("made/prepared.json", prepared_json),
            "prepared from another source",
        ),
        case(
            "prepared.json a list", "leaf", occupy_target("made/prepared.json", "[1]"), "prepared from another source"
        ),
        case(
            "prepared.json nested",
            "leaf",
            occupy_target("made/prepared.json", "[" * 200_000),
            "prepared from another source",
        ),
        case(
            "prepared.json a pipe",
            "leaf",
            lambda raw: (write_source(raw), pipe(raw.parent / "made/prepared.json")),
            "prepared",
        ),
        case("unfinished a link", "leaf", link_target("made/unfinished", "precious"), rows, accepted=True),
        case(
            "train.parquet a link",
            "leaf",
            link_target("made/train.parquet", "precious/notes.txt"),
            "holds train.parquet",
        ),
        case(
            "train.parquet a broken link",
            "leaf",
            link_target("made/train.parquet", "precious/new"),
            "holds train.parquet",
        ),
        case(
            "prepared.json a link",
            "leaf",
            link_target("made/prepared.json", "precious/notes.txt"),
            "prepared from another",
        ),
        case(
            "prepared.json a broken link",
            "leaf",
            link_target("made/prepared.json", "precious/new"),
            "prepared from another",
        ),
        case("train.new a link", "leaf", link_target("made/train.new", "precious/notes.txt"), "holds train.new"),
        case("target a broken link", "leaf", link_target("made", "nowhere"), "is not a folder"),
        case("target a file", "leaf", occupy_target("made"), "is not a folder"),
        case("target below a file", "leaf", occupy_target("made"), "Not a directory", target="made/below"),
        case("target the source", "leaf", write_source, "whose files are read", target="raw"),
        case("target in the source", "leaf", write_source, "whose files are read", target="raw/made"),
        case("target a link into the source", "leaf", link_target("made", "raw"), "whose files are read"),
        case("target a device", "leaf", write_source, "is not a folder", target="../../../../../../dev/null"),
        case("target without a name", "leaf", write_source, "an empty text", target=""),
        case("target with a zero byte", "leaf", write_source, "can't be used as a folder's name", target="ma\0de"),
        case("target of 300 characters", "leaf", write_source, "name too long", target="m" * 300),
        case("source missing", "leaf", write_source, "there is no such file or folder", source="rue"),
        case(
            "source a file",
            "leaf",
            occupy_target("file.zip"),
            "this is no folder (archives must be unpacked)",
            source="file.zip",
        ),
        case("source without a name", "leaf", write_source, "there is no such file or folder", source=""),
        case("source with a zero byte", "leaf", write_source, "there is no such file or folder", source="r\0w"),
        case("source of 300 characters", "leaf", write_source, "name too long", source="r" * 300),
        case("source a pipe", "leaf", lambda raw: pipe(raw.parent / "p"), "this is no folder", source="p"),
        case("a third folder", "leaf", write_source, "type fedcohort prepare", options=("more",)),
        case("an unknown option", "leaf", write_source, "there is no option 'sizes'", options=("sizes=3",)),
        case("an unknown kind", "lief", write_source, "the kind must be one of"),
        case("an empty kind", "", write_source, "the kind must be one of"),
    ]


def cases() -> list[Case]:
    """List the cases."""
    return targets()
