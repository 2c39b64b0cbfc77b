"""Where a result comes from."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedcohort.errors import CheckpointError
from fedcohort.record import provenance
from run_harness import go


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    provenance.commit.cache_clear()
    yield
    provenance.commit.cache_clear()


def git(where: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-C", str(where), "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false", *words],
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
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path / "src" / "pack")
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
def test_what_decides_a_result_is_code(tree: Path, name: str, changed: bool) -> None:
    found, dirty = provenance.commit()
    assert len(found) == 40
    assert not dirty
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).write_text("b")
    provenance.commit.cache_clear()
    assert provenance.commit() == (found, changed)


def test_outside_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance.commit() == ("unknown", True)


def test_the_sources_of_a_run_are_those_that_it_runs(tmp_path: Path) -> None:
    """A new method, and a change in another, leave them; a change in a chosen one, or in what it imports, doesn't."""
    top = tmp_path / "fedcohort"
    texts = {
        "selector/base.py": "",
        "selector/mine.py": "from fedcohort.selector import base, score",
        "selector/score.py": "",
        "selector/theirs.py": "from fedcohort.selector.other import x",
        "selector/other.py": "",
        "lightning/loop.py": "",
        "round/plan.py": "",
        "record/folder.py": "",
        "tracking/sync.py": "",
        "observe/progress.py": "",
        "command/x.py": "",
    }
    for name, text in texts.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    watching = {"a": {"_target_": "fedcohort.console.progress.Progress"}, "b": {"_target_": "fedcohort.record.x.X"}}
    config = {"selector": {"_target_": "fedcohort.selector.mine.Mine"}, "callback": watching, "rounds": 3}
    first = provenance.sources(config, top)
    for name in (
        "selector/theirs.py",
        "selector/other.py",
        "selector/new.py",
        "observe/progress.py",
        "tracking/sync.py",
    ):
        (top / name).write_text("changed = True")
        assert provenance.sources(config, top) == first, name
    chosen = ("selector/mine.py", "selector/score.py", "selector/base.py")
    for name in (*chosen, "lightning/loop.py", "round/new.py", "record/folder.py"):
        before = provenance.sources(config, top)
        (top / name).write_text(texts.get(name, "") + "\nchanged = True")
        assert provenance.sources(config, top) != before, name


def test_the_package_is_the_whole_one() -> None:
    assert (provenance.PACKAGE / "selector" / "random.py").exists()
    found = provenance.run_by({"fedcohort.selector.random.Random"}, provenance.read_files(provenance.PACKAGE))
    assert {"selector/random.py", "selector/base.py", "lightning/loop.py", "training/step.py", "component.py"} <= found
    assert "selector/flash.py" not in found


def test_a_home_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dataset.path=~/data` is read: no shell expands it in an option."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    (before,) = provenance.files({"dataset": {"path": "~/data"}})
    (tmp_path / "data" / "train.csv").write_bytes(b"x")
    assert list(provenance.files({"dataset": {"path": "~/data"}})) != [before]
    assert list(provenance.files({"dataset": {"path": "~nobody-of-this-name/data"}})) == []


def test_a_folder_is_what_its_files_hold(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    config = {"dataset": {"path": str(tmp_path)}, "model": {"weights": "not there"}}
    (before,) = provenance.files(config)
    assert before[0] == "dataset.path"
    assert list(provenance.files(config)) == [before]
    (tmp_path / "b").write_bytes(b"")
    assert list(provenance.files(config)) != [before]


def test_a_start_of_before_there_were_checksums_is_gone_on_with() -> None:
    now = provenance.this({}, {}, "0123456789abcdef")
    assert provenance.differences({name: value for name, value in now.items() if name != "data"}, now) == []
    assert provenance.differences({**now, "data": "other"}, now) == [
        "dataset has other data than it had (checksum 0123456789abcdef, was other)"
    ]


def test_a_table_that_was_changed_is_other_data(tmp_path: Path) -> None:
    """A trace is named by its path: the config's hash stays what it is."""
    table = tmp_path / "ready.csv"
    table.write_text("client,start_s,end_s\n" + "".join(f"{k},0,{1000 + k}\n" for k in range(12)))
    words = ("availability=trace", f"availability.path={table}", "availability.period_s=2000")
    go(tmp_path, *words, "rounds=1")
    table.write_text(table.read_text().replace(",0,1003", ",0,1500"))
    with pytest.raises(CheckpointError, match=r"the content behind availability\.path has changed"):
        go(tmp_path, *words, "rounds=2", "resume=true")
    assert go(tmp_path, *words, "rounds=2", "resume=force").last.step == 2


def test_the_file_of_a_users_component_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class in `_target_` and a network in model.path; callbacks change no result, and fedcohort has `sources`."""
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "my_component.py"
    file.write_text("x = 1\n")
    config = {
        "selector": {"_target_": "my_component.Mine", "base": {"_target_": "my_component.Base"}},
        "model": {"_target_": "fedcohort.model.module.Module", "path": "my_component.Net"},
        "dataset": {"_target_": "fedcohort.dataset.folder.Folder", "path": "my_component.Net"},
        "callback": {"mine": {"_target_": "my_component.Watch"}},
    }
    before = dict(provenance.user_code(config))
    assert sorted(before) == ["model.path", "selector._target_", "selector.base._target_"]
    file.write_text("x = 2\n")
    assert all(before[option] != digest for option, digest in provenance.user_code(config))
