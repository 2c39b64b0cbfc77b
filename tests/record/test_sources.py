"""The source files and data files that decide the results of a run."""

from pathlib import Path

import pytest

from fedcohort.record import sources


def test_the_digest_covers_the_files_that_a_run_executes(tmp_path: Path) -> None:
    """A new method or a change in another one does not alter it; a change in a chosen method or its imports does."""
    top = tmp_path / "fedcohort"
    texts = {
        "selector/base.py": "",
        "selector/chosen.py": "from fedcohort.selector import base, score",
        "selector/score.py": "",
        "selector/unchosen.py": "from fedcohort.selector.other import x",
        "selector/other.py": "",
        "lightning/loop.py": "",
        "round/plan.py": "",
        "record/folder.py": "",
        "tracking/sync.py": "",
        "console/progress.py": "",
        "command/x.py": "",
    }
    for name, text in texts.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    watching = {"a": {"_target_": "fedcohort.console.progress.Progress"}, "b": {"_target_": "fedcohort.record.x.X"}}
    config = {"selector": {"_target_": "fedcohort.selector.chosen.Chosen"}, "callback": watching, "rounds": 3}
    first = sources.digest_sources(config, sources.read_source_files(top))
    for name in (
        "selector/unchosen.py",
        "selector/other.py",
        "selector/new.py",
        "console/progress.py",
        "tracking/sync.py",
    ):
        (top / name).write_text("changed = True")
        assert sources.digest_sources(config, sources.read_source_files(top)) == first, name
    chosen = ("selector/chosen.py", "selector/score.py", "selector/base.py")
    for name in (*chosen, "lightning/loop.py", "round/new.py", "record/folder.py"):
        before = sources.digest_sources(config, sources.read_source_files(top))
        (top / name).write_text(texts.get(name, "") + "\nchanged = True")
        assert sources.digest_sources(config, sources.read_source_files(top)) != before, name


def test_the_files_of_the_package_are_read() -> None:
    assert (sources.PACKAGE_FOLDER / "selector" / "random.py").exists()
    files = sources.list_files_of_classes(
        {"fedcohort.selector.random.Random"}, sources.read_source_files(sources.PACKAGE_FOLDER)
    )
    assert {"selector/random.py", "selector/base.py", "lightning/loop.py", "training/step.py", "component.py"} <= files
    assert "selector/flash.py" not in files


def test_a_tilde_stands_for_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dataset.path=~/data` is read: no shell expands it in an option."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    before = sources.digest_data({"dataset": {"path": "~/data"}})
    (tmp_path / "data" / "train.csv").write_bytes(b"x")
    assert sources.digest_data({"dataset": {"path": "~/data"}}) != before
    assert sources.digest_data({"dataset": {"path": "~nobody-of-this-name/data"}}) == {}


def test_the_digest_of_a_folder_covers_its_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    config = {"dataset": {"path": str(tmp_path)}, "model": {"weights": "not there"}}
    before = sources.digest_data(config)
    assert list(before) == ["dataset.path"]
    assert sources.digest_data(config) == before
    (tmp_path / "b").write_bytes(b"")
    assert sources.digest_data(config) != before


def test_the_file_of_a_users_component_has_a_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class in `_target_` and a network in model.path. Callbacks change no result; this package has other digests."""
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "my_component.py"
    file.write_text("x = 1\n")
    config = {
        "selector": {"_target_": "my_component.Mine", "base": {"_target_": "my_component.Base"}},
        "model": {"_target_": "fedcohort.model.module.Module", "path": "my_component.Net"},
        "dataset": {"_target_": "fedcohort.dataset.folder.Folder", "path": "my_component.Net"},
        "callback": {"mine": {"_target_": "my_component.Watch"}},
    }
    before = sources.digest_user_code(config)
    assert sorted(before) == ["model.path", "selector._target_", "selector.base._target_"]
    file.write_text("x = 2\n")
    assert all(before[option] != digest for option, digest in sources.digest_user_code(config).items())
