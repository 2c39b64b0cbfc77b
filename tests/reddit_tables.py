"""Random comments in the format of LEAF's Reddit files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.dataset.raw import leaf
from raw_dataset_files import prepare_tables

VOCABULARY = ("so", "it", "is", "what", "they", "say", "and", "then", "nobody", "knows")


def cut_comment(words: Sequence[str], length: int = 10) -> tuple[list[list[str]], list[list[str]]]:
    """Return a comment's tokens in sequences of `length`, and their targets, like LEAF."""
    inputs, targets = ["<BOS>", *words, "<EOS>"], [*words, "<EOS>", "<PAD>"]
    padding = ["<PAD>"] * (-len(inputs) % length)
    starts = range(0, len(inputs) + len(padding), length)
    x, y = ([(row + padding)[i : i + length] for i in starts] for row in (inputs, targets))
    return x, y


def write_leaf_comments(
    folder: Path, part: str, users: Mapping[str, Sequence[Sequence[str]]], length: int = 10
) -> None:
    """Write one file with the comments of each user. As in LEAF, `num_samples` counts all parts."""
    data: dict[str, Any] = {}
    for user, comments in users.items():
        token_rows = [cut_comment(words, length) for words in comments]
        targets = [
            {"subreddit": "s", "created_utc": i, "score": 1, "target_tokens": y} for i, (_, y) in enumerate(token_rows)
        ]
        data[user] = {"x": [x for x, _ in token_rows], "y": targets}
    (folder / part).mkdir(parents=True, exist_ok=True)
    content = {"users": list(users), "num_samples": [99] * len(users), "user_data": data}
    (folder / part / f"reddit_0_{part}.json").write_text(json.dumps(content))


def write_comments(folder: Path, users: int = 4, comments: int = 6, seed: int = 0) -> Path:
    """Write tables of random comments of 3 to 25 words; users prefer different words."""
    rng = np.random.default_rng(seed)
    for part, n in (("train", comments), ("test", 2)):
        drawn = {}
        for user in range(users):
            word_probabilities = rng.dirichlet(np.full(len(VOCABULARY), 0.5))
            drawn[f"u{user}"] = [
                rng.choice(VOCABULARY, int(rng.integers(3, 26)), p=word_probabilities).tolist() for _ in range(n)
            ]
        write_leaf_comments(folder / "raw", part, drawn)
    prepare_tables(leaf.plan_table_pieces(folder / "raw", None), folder / "made")
    leaf.write_vocabulary(folder / "made")
    return folder / "made"
