"""Shakespeare's plays by speaking role: which character comes after 80 of them (LEAF, Caldas et al. 2018).

    a role's lines, joined by spaces:   x_i = characters i to i + 79,   y_i = character i + 80,   i = 0, step, ...
    80 characters: letters, digits, " !"&'(),-.:;>?[]}" and the line break; any other one counts as a space
    client k = the k-th role by id, of those with three training sequences or more
    test   given: the files' parts;  sample: the last tenth of a role's sequences, of which the first 80 characters'
           worth is left out, so that no character is in both parts;  user: all of a tenth of the roles (`dataset.leaf`)

A split in time, not at random: sequences that overlap would be in both parts. Validation sequences are drawn at random
all the same: with a step below 81 nearly all of them stand in training sequences, moved by a few characters, so that
server_val, and what watches it, can't tell what was learnt by heart. Test sequences can.

From a folder with train.parquet and test.parquet, of either of two layouts: lines (`role`, `line`, in the order of the
play), or LEAF's sequences (`client` or `character_id`, `x` of 80 characters, `y` of one, as `fedcohort prepare leaf`
writes them); or from the Hugging Face hub, which has the latter and one part, without test=given. Characters stand in
memory as bytes, which model=char_lstm looks up.

LEAF's text has 4,226,158 sequences of 1,129 roles (a fifth of them are FedBalancer's 845,231). Of tables in its layout,
and of lines with step=1, the start-up table tells the difference; not with test=given, as LEAF leaves out what both
parts would share.

Lines were read for real, of 37 plays from another edition than LEAF's, with other roles and other counts: numbers of
papers on LEAF's text are not comparable. Of sequences small files were made.

Departures from LEAF: it divides at .9 of the sequences, too, but leaves 79 of them out; here as many as share a
character, 80 with step=1. What LEAF has beside its 80 characters is not known here; ours is a space.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import UInt8

from fedcohort import ranges
from fedcohort.dataset import cells, leaf
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.files import give_back
from fedcohort.dataset.people import Source
from fedcohort.dataset.source import Columns, check_columns, column_of, has_column
from fedcohort.dataset.table import Frame, text
from fedcohort.rng import generator
from fedcohort.types import Ids

CHARACTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
LENGTH = 80
SEQUENCES, ROLES = 4_226_158, 1_129  # that LEAF's text has
COPIED = 10_000  # sequences that are read or copied at a time
ROLE, PARTS = ("role", "client", "character_id"), ("train",)


@dataclass(frozen=True)
class Shakespeare(Dataset):
    """The data set, with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name there.
        columns: what the tables call columns otherwise than here, by the names above, or None.
        test, users, least: LEAF's rules (`dataset.leaf`).
        step: characters between a sequence's start and the next one's, of lines.
    """

    path: str | None
    hub: str
    columns: Columns | None
    test: str
    users: float
    least: int
    step: int

    def __post_init__(self) -> None:
        text("path", self.path, optional=True)
        text("hub", self.hub)
        check_columns(self.columns, ROLE, ("line", "x"), ("line", "y"))
        leaf.Rules(self.test, self.users, self.least)
        ranges.integer("step", self.step, "[1, inf)")

    def load(self, seed: int) -> Raw:
        """uint8 [N, 80], 80 classes, natural clients; who takes part is drawn. Raises `DataError`."""
        rules, given = leaf.Rules(self.test, self.users, self.least), self.test == "given"
        frames = Source(self.path, self.hub, self.columns, PARTS).frames("shakespeare", given)
        roles = leaf.people(frames, ROLE)
        lines = has_column(frames[0], "line") and not {"x", "y"} & frames[0].renamed.keys()
        rng = generator(seed, "leaf")
        if lines:
            held, others = read_lines(frames, roles, given, self.step)
            found = len(held.owner), len(np.unique(held.owner))
            parts = leaf.divide("shakespeare", held.owner, rules, rng, held.given, -(-LENGTH // self.step))
            give_back()
            (x, y), (test_x, test_y) = (held.take(rows) for rows in (parts.train, parts.test))
            del held
        else:
            found = len(roles), len(np.unique(roles))
            parts = leaf.divide("shakespeare", roles, rules, rng, frames[0].table.num_rows, LENGTH)
            del roles  # as much as a tenth of the sequences
            give_back()
            ((x, y), (test_x, test_y)), others = read_sequences(frames, (parts.train, parts.test))
        said = [f"{LENGTH} characters, the next one is the label", parts.remark]
        said += [f"{others:,} other characters are spaces"] * bool(others)
        said += ["validation sequences overlap training sequences"] * (not lines or self.step <= LENGTH)
        if not lines or self.step == 1:
            said += leaf.compare(rules, ("sequences", found[0], SEQUENCES), ("roles", found[1], ROLES))
        return Raw(
            "shakespeare",
            x,
            y,
            test_x,
            test_y,
            n_classes=len(CHARACTERS),
            train_owner=parts.owner,
            test_owner=parts.test_owner,
            inputs="; ".join(said),
            class_names=tuple({"\n": "line break", " ": "space"}.get(c, c) for c in CHARACTERS),
            pooled_test=parts.test_owner is None,
            revision=frames[0].revision,
            single_use=True,
        )


@dataclass(frozen=True)
class Held:
    """Sequences that are not copied out of their text until they are asked for.

    Attributes:
        codes: all texts one after the other, uint8.
        starts: where each sequence begins.
        owner: its role.
        given: how many of the first ones the files' training part has.
    """

    codes: UInt8[np.ndarray, "characters"]
    starts: Ids
    owner: Ids
    given: int

    def take(self, rows: Ids) -> tuple[UInt8[np.ndarray, "n 80"], Ids]:
        """The characters and the next one of these sequences."""
        windows = np.lib.stride_tricks.sliding_window_view(self.codes, LENGTH + 1)
        x = np.empty((len(rows), LENGTH), np.uint8)
        for start in range(0, len(rows), COPIED):
            some = slice(start, start + COPIED)
            x[some] = windows[self.starts[rows[some]], :LENGTH]
        return x, self.codes[self.starts[rows] + LENGTH].astype(np.int64)


def read_lines(frames: Sequence[Frame], roles: Ids, given: bool, step: int) -> tuple[Held, int]:
    """Join each role's lines in their order, all of them, or those of each part where the parts are given.

    Returns all sequences of these texts, `step` characters from each other, and how many characters are none of ours.
    """
    lines = [line for frame in frames for line in _words(frame, column_of(frame, "line"))]
    first = frames[0].table.num_rows
    part = (np.arange(len(lines)) >= first) if given else np.zeros(len(lines), dtype=bool)
    order = np.lexsort((roles, part))
    cuts = np.flatnonzero(np.diff(roles[order]) | np.diff(part[order])) + 1
    groups = np.split(order, cuts)
    found = [encode(" ".join(lines[i] for i in group)) for group in groups]
    n_given = sum(not part[group[0]] for group in groups)
    lengths = np.array([len(codes) for codes, _ in found])
    counts = np.maximum(0, (lengths - LENGTH - 1) // step + 1)
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.repeat(np.cumsum(lengths) - lengths, counts) + step * place
    owner = np.repeat(np.array([roles[group[0]] for group in groups], dtype=np.int64), counts)
    held = Held(np.concatenate([codes for codes, _ in found]), starts, owner, int(counts[:n_given].sum()))
    return held, sum(n for _, n in found)


def read_sequences(frames: Sequence[Frame], parts: Sequence[Ids]) -> tuple[list[tuple[np.ndarray, Ids]], int]:
    """LEAF's sequences and the characters that come next, of each of `parts`: sorted rows of all tables together.

    Returns them, and how many characters of all rows are none of ours. Raises `DataError` by row.
    """
    found = [(np.empty((len(rows), LENGTH), np.uint8), np.empty(len(rows), np.int64)) for rows in parts]
    start, odd = 0, 0
    for frame in frames:
        for name, column, length in (("x", 0, LENGTH), ("y", 1, 1)):
            for at, codes, others in _encoded(frame, column_of(frame, name), length):
                odd += others
                for rows, made in zip(parts, found, strict=True):
                    first, last = np.searchsorted(rows, (start + at, start + at + len(codes)))
                    some = codes[rows[first:last] - start - at]
                    made[column][first:last] = some if length > 1 else some[:, 0]
        start += frame.table.num_rows
    return found, odd


def _encoded(frame: Frame, name: str, length: int) -> Iterator[tuple[int, np.ndarray, int]]:
    """The characters of a column's texts, all of one length, piece by piece: the first row, [rows, length], odd ones.

    Raises `DataError` by row.
    """
    start = 0
    pieces = (chunk.slice(at, COPIED) for chunk in frame.chunks(name) for at in range(0, len(chunk), COPIED))
    for piece in pieces:
        words = _texts(frame, name, piece, start)
        wrong = next((row for row, word in enumerate(words) if len(word) != length), None)
        if wrong is not None:
            what = f"holds {len(words[wrong])} characters, and {length} are meant"
            raise frame.blame(name, start + wrong, what)
        codes, others = encode("".join(words))
        yield start, codes.reshape(len(words), length), others
        start += len(words)


def _words(frame: Frame, name: str) -> list[str]:
    return _texts(frame, name, frame.column(name), 0)


def _texts(frame: Frame, name: str, column: Any, start: int) -> list[str]:  # noqa: ANN401  pyarrow has no types
    """The texts of a column, or of a piece of it from the row `start` on. Raises `DataError` by row."""
    if not cells.is_text(column.type):
        raise frame.error(name, f": column {name!r} must hold texts, it holds {column.type}")
    words: list[str] = column.to_pylist()
    empty = next((row for row, word in enumerate(words) if not word), None)
    if empty is not None:
        raise frame.blame(name, start + empty, "is empty")
    return words


def encode(words: str) -> tuple[UInt8[np.ndarray, "characters"], int]:
    """The numbers of the characters, and how many of them are none of ours."""
    points = np.frombuffer(words.encode("utf-32-le"), dtype="<u4")
    codes = TABLE[np.minimum(points, len(TABLE) - 1)]
    odd = codes == len(CHARACTERS)
    codes[odd] = CHARACTERS.index(" ")
    return codes, int(odd.sum())


def _table() -> UInt8[np.ndarray, "points"]:
    table = np.full(256, len(CHARACTERS), dtype=np.uint8)
    table[[ord(c) for c in CHARACTERS]] = np.arange(len(CHARACTERS))
    return table


TABLE = _table()  # the number of each of the first code points, len(CHARACTERS) for those that have none
