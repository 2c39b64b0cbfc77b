"""A disk that fills up at any file: one line, nothing damaged, and a resume with the bits of a run that was spared."""

import errno
import json
import os
import resource
from pathlib import Path

import pytest

from fedcohort.errors import DiskError, FedcohortError, OptionError
from fedcohort.host import disk
from fedcohort.record import history
from process_kills import run_in_child
from run_harness import FinishedRun, run_training

OVERRIDES = ("agg=scaffold", "callback=default", "callback.figures=null", "split.limit=240", "rounds=3")
STORED = ("client_store.limit_gb=0",)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return run_training(tmp_path_factory.mktemp("whole"), *OVERRIDES)


def check_resume(finished_run: FinishedRun, logs: Path, *overrides: str) -> None:
    """A resume ends like a run that was spared: the same bits, every file."""
    resumed = run_training(logs, *OVERRIDES, *overrides, "resume=true")
    assert history.read_history(resumed.folder).fingerprints == history.read_history(finished_run.folder).fingerprints
    assert bool((resumed.weights() == finished_run.weights()).all())
    assert json.loads((resumed.folder / "summary.json").read_text())["status"] == "finished"
    assert {path.name for path in finished_run.folder.iterdir()} <= {path.name for path in resumed.folder.iterdir()}
    assert not [path for path in logs.rglob("*") if "partial" in path.name or "draft" in path.name]


@pytest.mark.parametrize(
    ("limit", "overrides"),
    [
        (400, ()),  # config.yaml
        (2_600, ()),  # info.json
        (4_000, ()),  # the journal
        (12_000, ()),  # the first checkpoint
        (60_000, STORED),  # what clients keep
        (45_000, STORED),  # the first checkpoint beside it
    ],
)
def test_a_file_that_cannot_grow_ends_the_run_with_one_line(
    finished_run: FinishedRun, tmp_path: Path, capfd: pytest.CaptureFixture[str], limit: int, overrides: tuple[str, ...]
) -> None:
    """limit: bytes that a file may have; what is written beyond is refused, as a full disk refuses it."""

    def train_with_limit() -> None:
        hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard_limit))
        try:
            run_training(tmp_path, *OVERRIDES, *overrides)
        except FedcohortError as error:
            os.write(2, f"{error}\n".encode())
            raise SystemExit(2) from error

    capfd.readouterr()
    assert os.waitstatus_to_exitcode(run_in_child(train_with_limit)) == 2
    output = capfd.readouterr()
    assert "Traceback" not in output.out + output.err
    assert "could not be written" in output.err.splitlines()[-1]
    assert "resume=true" in output.err.splitlines()[-1]
    check_resume(finished_run, tmp_path, *overrides)


MOMENTS = [
    ("fedcohort.record.client_table.write_rows", 3),
    ("fedcohort.record.client_table.merge_step_files", 1),
    ("fedcohort.record.journal.commit_step", 3),
    ("fedcohort.record.status.write_atomically", 3),
    ("fedcohort.console.summary.write_atomically", 1),
    ("fedcohort.lightning.checkpoint._save_with_digest", 3),  # of a checkpoint
    ("fedcohort.lightning.checkpoint._save_with_digest", 4),  # of the final weights
    ("fedcohort.record.provenance.append_start_record", 1),
]


@pytest.mark.parametrize(("path", "call"), MOMENTS)
def test_a_full_disk_ends_the_run_without_damage(
    finished_run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, call: int
) -> None:
    calls = {"n": 0}

    def full(*args: object, **kwargs: object) -> object:
        calls["n"] += 1
        if calls["n"] >= call:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(*args, **kwargs)

    module, _, name = path.rpartition(".")
    original = getattr(__import__(module, fromlist=[name]), name)
    with monkeypatch.context() as patched:
        patched.setattr(path, full)
        with pytest.raises(FedcohortError, match=r"could not be written.*No space left.*resume=true") as caught:
            run_training(tmp_path, *OVERRIDES)
    assert "\n" not in str(caught.value)
    check_resume(finished_run, tmp_path)


def test_only_the_disks_own_errors_are_explained(tmp_path: Path) -> None:
    for error in (FileNotFoundError(errno.ENOENT, "no such file"), ValueError("x"), OSError("without a number")):
        with pytest.raises(type(error)), disk.convert_disk_errors(tmp_path):
            raise error
    expected = pytest.raises(DiskError, match=rf"^{tmp_path}/a could not be written \(quota\). .* resume=true$")
    with expected, disk.convert_disk_errors(tmp_path):
        raise OSError(errno.EDQUOT, "quota", f"{tmp_path}/a")


def test_a_draft_follows_no_link_and_no_file_is_lost(tmp_path: Path) -> None:
    """A link in place of the draft is removed; an error leaves the old file and no draft."""
    (tmp_path / "precious").write_text("mine")
    (tmp_path / ".page.fedcohort-draft").symlink_to(tmp_path / "precious")

    def write(text: str) -> None:
        with disk.write_file_atomically(tmp_path / "page") as draft:
            draft.write_text(text)
            if text == "half":
                raise RuntimeError

    write("new")
    with pytest.raises(RuntimeError):
        write("half")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"precious": "mine", "page": "new"}


@pytest.mark.parametrize("step", ["open", "write", "replace"])
def test_an_error_of_the_disk_names_the_file_and_not_its_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A folder without write access, a full disk (whose error names no file), and a folder in place of the file."""
    target = tmp_path / "page.html"

    def write() -> None:
        with disk.write_file_atomically(target) as draft:
            if step == "open":
                raise PermissionError(errno.EACCES, "Permission denied", str(draft))
            draft.write_text("half")
            if step == "write":
                raise OSError(errno.ENOSPC, "No space left on device")

    if step == "replace":
        target.mkdir()
    with pytest.raises(OSError, match=r"page\.html") as caught:
        write()
    assert caught.value.filename == str(target)
    assert disk.describe_disk_error(caught.value).startswith(f"{target} could not be read or written (")
    assert [path.name for path in tmp_path.iterdir()] == (["page.html"] if step == "replace" else [])


@pytest.mark.parametrize("name", [".mlflow.db.lock", ".page.html.fedcohort-draft", "page.html"])
def test_a_read_only_folder_is_named_and_not_a_hidden_file_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A visible file is named where its folder is writable or the file itself can't be read."""
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / name))
    expected = f"{tmp_path} is read-only (Permission denied): make the folder and its files writable"
    visible_file = f"{tmp_path / name} could not be read or written (Permission denied)"
    assert disk.describe_disk_error(error).startswith(visible_file if name == "page.html" else expected)
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.F_OK and Path(path) == tmp_path)
    assert disk.describe_disk_error(error).startswith(expected)
    with pytest.raises(DiskError, match=rf"^{tmp_path} could not be written"), disk.convert_disk_errors(tmp_path):
        raise error
    monkeypatch.setattr(os, "access", lambda _, mode: mode == os.F_OK)
    assert disk.describe_disk_error(error).startswith(f"{tmp_path / name} could not be read or written")


def test_a_command_replaces_only_what_it_wrote(tmp_path: Path) -> None:
    """Its own page shows whose the other files are; without one, a file of the user's stays."""
    names = ("page.md", "table.csv")
    disk.reject_foreign_files(tmp_path / "nowhere", names, "page.md", "by us")
    (tmp_path / "page.md").write_text("written by us")
    (tmp_path / "table.csv").write_text("1")
    disk.reject_foreign_files(tmp_path, names, "page.md", "by us")
    (tmp_path / "page.md").write_text("my notes")
    with pytest.raises(OptionError, match=r"holds page.md, .* did not write: move it, or choose another"):
        disk.reject_foreign_files(tmp_path, names, "page.md", "by us")
    (tmp_path / "page.md").unlink()
    with pytest.raises(OptionError, match=r"holds table.csv"):
        disk.reject_foreign_files(tmp_path, names, "page.md", "by us")
