"""The digest of a run depends on its overrides and on the yaml files that these can reach."""

import shutil
from pathlib import Path

import pytest

from config_options import CONFIGS
from fedcohort.startup.compose import compose_run
from fedcohort.study.config_digests import ConfigDigests, find_words_in_text

WORDS = ("selector=ucb_cs", "heterogeneity=noise_bimodal", "experiment=flash_cifar10_cpu")


def edited(folder: Path, name: str, text: str) -> ConfigDigests:
    """The digests of a copy of the configs in which `text` was added to a file, or is one."""
    copy = folder / name.replace("/", "_")
    shutil.copytree(CONFIGS, copy)
    with (copy / name).open("a") as file:
        file.write(text)
    return ConfigDigests(copy)


@pytest.mark.parametrize(
    "name",
    [
        "train.yaml",
        "selector/ucb_cs.yaml",  # named by a word
        "heterogeneity/noise_bimodal.yaml",
        "experiment/flash_cifar10.yaml",  # by the file that a word names
        "model/resnet18_gn.yaml",  # and by the file that that one names
        "codec/none.yaml",  # by train.yaml
    ],
)
def test_changing_a_file_that_a_run_reads_changes_its_digest(name: str, tmp_path: Path) -> None:
    before = ConfigDigests(CONFIGS).find_digest(WORDS)
    assert edited(tmp_path, name, "\nanother: 1\n").find_digest(WORDS) != before
    assert edited(tmp_path / "package", name, "\n# @package other\n").find_digest(WORDS) != before
    unread = "\n# a comment that doesn't count\nhydra: {help: a page}\n"
    assert edited(tmp_path / "unread", name, unread).find_digest(WORDS) == before


def test_changing_a_method_keeps_the_digests_of_the_others(tmp_path: Path) -> None:
    source = "_target_: fedcohort.selector.random.Random\n"
    before = ConfigDigests(CONFIGS)
    after = edited(tmp_path, "selector/mine.yaml", source)
    assert after.find_digest(WORDS) == before.find_digest(WORDS)
    assert edited(tmp_path, "selector/oort.yaml", "\nalpha: 3\n").find_digest(WORDS) == before.find_digest(WORDS)
    overrides = ("selector=mine", *WORDS[1:])
    assert edited(tmp_path / "anew", "selector/mine.yaml", source + "limit: 3\n").find_digest(
        overrides
    ) != after.find_digest(overrides)


def test_a_file_that_is_no_option_counts_for_all_runs(tmp_path: Path) -> None:
    """A text does not show whether `a-b` is one name or two."""
    digests = edited(tmp_path, "selector/my-own.yaml", "a: 1\n")
    assert digests.find_digest(WORDS) != ConfigDigests(CONFIGS).find_digest(WORDS)
    assert edited(tmp_path / "again", "selector/my-own.yaml", "a: 2\n").find_digest(WORDS) != digests.find_digest(WORDS)


def test_other_overrides_change_the_digest() -> None:
    digests = ConfigDigests(CONFIGS)
    assert (
        len({digests.find_digest(words) for words in (WORDS, WORDS[:2], (*WORDS, "rounds=3"), (*WORDS, "rounds=4"))})
        == 4
    )
    assert ConfigDigests(CONFIGS).find_digest(WORDS) == digests.find_digest(WORDS)


@pytest.mark.parametrize(
    "words",
    [
        WORDS,
        ("selector=flash", "agg=scaffold"),
        ("experiment=fedbalancer_reddit_cpu", "+mine=3"),
        ("dataset=folder", "dataset.client=site"),
    ],
)
def test_the_digest_covers_every_file_that_a_composition_reads(words: tuple[str, ...], tmp_path: Path) -> None:
    """The overrides compose to the same configuration if all other files are missing."""
    digests = ConfigDigests(CONFIGS)
    files = list(digests._find_reachable_files(find_words_in_text(" ".join(words))))
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CONFIGS / name, tmp_path / name)
    assert len(files) < len(list(CONFIGS.rglob("*.yaml"))) / 2
    assert compose_run(words, tmp_path).config == compose_run(words, CONFIGS).config
