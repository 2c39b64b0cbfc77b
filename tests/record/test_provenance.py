"""The commit, versions and data of each start of a run."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedcohort.errors import CheckpointError
from fedcohort.record import provenance
from run_harness import run_training


@pytest.fixture(autouse=True)
def _without_cache() -> Iterator[None]:
    provenance.current_commit.cache_clear()
    yield
    provenance.current_commit.cache_clear()


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false", *arguments],
        check=True,
    )


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a package, an option and a table; `provenance` lies in it."""
    for name in ("src/pack/a.py", "configs/selector/a.yaml", "docs/a/table.md", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "a")
    monkeypatch.setattr(provenance, "PACKAGE_FOLDER", tmp_path / "src" / "pack")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("src/pack/a.py", True),
        ("src/pack/new.py", True),
        ("configs/selector/new.yaml", True),
        ("train.py", True),
        ("docs/a/table.md", False),
        ("README.md", False),
        ("logs/run.log", False),
    ],
)
def test_only_files_that_decide_results_make_a_commit_dirty(tree: Path, name: str, changed: bool) -> None:
    commit, dirty = provenance.current_commit()
    assert len(commit) == 40
    assert not dirty
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).write_text("b")
    provenance.current_commit.cache_clear()
    assert provenance.current_commit() == (commit, changed)


def test_the_index_of_the_repository_is_not_written(tree: Path) -> None:
    """`git status` locks and rewrites it where a file has another time: a `git commit` at that moment would fail."""
    index = (tree / ".git" / "index").read_bytes()
    os.utime(tree / "src/pack/a.py", (1, 1))
    assert not provenance.current_commit()[1]
    assert (tree / ".git" / "index").read_bytes() == index


def test_outside_of_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "PACKAGE_FOLDER", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance.current_commit() == ("unknown", True)


def test_a_start_without_a_checksum_is_accepted() -> None:
    start = provenance.describe_start({}, {}, "0123456789abcdef")
    assert (
        provenance.list_start_differences({name: value for name, value in start.items() if name != "data"}, start) == []
    )
    assert provenance.list_start_differences({**start, "data": "other"}, start) == [
        "the dataset has other data than before (checksum 0123456789abcdef, was other)"
    ]


def test_a_changed_table_changes_the_data_digest(tmp_path: Path) -> None:
    """The config has the path of a trace, so that its hash stays equal."""
    table = tmp_path / "ready.csv"
    table.write_text("client,start_s,end_s\n" + "".join(f"{k},0,{1000 + k}\n" for k in range(12)))
    overrides = ("availability=trace", f"availability.path={table}", "availability.period_s=2000")
    run_training(tmp_path, *overrides, "rounds=1")
    table.write_text(table.read_text().replace(",0,1003", ",0,1500"))
    with pytest.raises(CheckpointError, match=r"the files that availability\.path names have changed"):
        run_training(tmp_path, *overrides, "rounds=2", "resume=true")
    assert run_training(tmp_path, *overrides, "rounds=2", "resume=force").last.step == 2
