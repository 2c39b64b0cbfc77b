"""Markdown is printed unchanged into a file, and as aligned tables that fit on a terminal."""

import errno
import re
import sys
from pathlib import Path

import pytest

from fedcohort.console.terminal import MAX_CELL_WIDTH, print_for_each, print_markdown
from fedcohort.errors import DataError

CELLS = ("36 min 14 s", "0.88 [0.76, 1.04]", "331 MB (1.50 ×)", "22.7 GFLOP (1.13 ×)", "not settled", "10 of 10 seeds")
TEXT = "a text that is longer than a cell and becomes several lines"
ROW = f"| pow\\|d | {' | '.join(CELLS)} | {TEXT} | {'z' * (MAX_CELL_WIDTH + 1)} |"
PAGE = f"# Title\n\n| method |{' several words as a heading |' * 8}\n|---|{'---:|' * 8}\n{ROW}\n"


def test_a_pipe_gets_the_markdown_itself(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_markdown(PAGE)
    assert capsys.readouterr().out == PAGE


@pytest.mark.parametrize("width", [*range(60, 170, 7), 400])
def test_a_terminal_gets_tables_that_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Every short cell is in one piece, long ones lose no letter, and each part of the table names its rows."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    print_markdown(PAGE)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= min(width, 160)
    rows = [text for text in lines if "pow|d" in text]
    assert len(rows) == sum("──" in text for text in lines)
    assert all(sum(cell in row for row in rows) == 1 for cell in CELLS)
    assert {word for text in lines for word in text.split()} >= set(TEXT.split())
    assert sum(text.count("z") for text in lines) == MAX_CELL_WIDTH + 1
    assert not any("| " in text or "…" in text for text in lines)


def test_an_error_of_one_folder_does_not_keep_the_others_from_being_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Errors of a user and of the disk are printed, and the exit code is 2. A bug keeps its traceback."""
    errors = {
        "full": OSError(errno.ENOSPC, "No space left on device", "/full/a.png"),
        "read-only": OSError(errno.EROFS, "Read-only file system", "/read-only/b.png"),
        "empty": DataError("no run here"),
    }

    def describe(folder: Path) -> str:
        if folder.name in errors:
            raise errors[folder.name]
        return f"drew {folder.name}"

    assert print_for_each([Path("first"), *map(Path, errors), Path("last")], describe) == 2
    output = capsys.readouterr()
    assert output.out == "drew first\ndrew last\n"
    messages = output.err.splitlines()
    assert messages[0].startswith("/full/a.png could not be read or written (No space left on device): free disk space")
    assert messages[1].startswith("/read-only/b.png could not be read or written (Read-only file system)")
    assert messages[2:] == ["no run here"]
    errors["bug"] = FileNotFoundError(errno.ENOENT, "No such file", "x")
    with pytest.raises(FileNotFoundError):
        print_for_each([Path("bug")], describe)
