"""Settings of all tests: run-time shape checks, small figures, and few checkpoints."""

import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from _pytest import logging as log_capture

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: a fork of a process with OpenMP threads hangs

# The main process of `-n 2` runs no test, and needs none of these slow imports.
if "PYTEST_XDIST_WORKER" in os.environ or "-n" not in sys.argv or sys.argv[sys.argv.index("-n") + 1] == "0":
    import session_setup  # noqa: F401

# A suite in the background of a script ignores SIGINT, as do its children; tests of Ctrl-C need the normal handler.
signal.signal(signal.SIGINT, signal.default_int_handler)


gc.disable()  # imports and collection create a million objects, hardly any of which are garbage


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection; a collection before would take half a second."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


EMPTY_PICTURE = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "svg": b"<svg/>"}  # first bytes of each format


def _save_empty_pictures(canvas: object, path: Path, file_formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write files without a picture where `style.save_figure` draws one."""
    files = {file_format: path.with_suffix(f".{file_format}") for file_format in file_formats}
    for file_format, file in files.items():
        file.write_bytes(EMPTY_PICTURE[file_format])
    return list(files.values())


@pytest.fixture(scope="session", autouse=True)
def _save_figure() -> Iterator[Callable[..., list[Path]]]:
    """Save figures without drawing them, and yield the function that draws them.

    Drawing takes tenths of a second for each figure. The tests of figures draw them, or request `rendered_figures`.
    """
    from fedcohort.report.figure import style  # noqa: PLC0415 - after the session's import hook

    save_figure = style.save_figure
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(style, "save_figure", _save_empty_pictures)
        yield save_figure


@pytest.fixture
def rendered_figures(monkeypatch: pytest.MonkeyPatch, _save_figure: Callable[..., list[Path]]) -> None:
    """Draw the figures that a test saves, with a quarter of the dots per inch."""
    monkeypatch.setattr("fedcohort.report.figure.style.DPI", 50)
    monkeypatch.setattr("fedcohort.report.figure.style.save_figure", _save_figure)


@pytest.fixture(scope="session", autouse=True)
def _return_memory_to_system() -> Iterator[Callable[[], None]]:
    """Keep free memory for the next run, and yield the function that returns it to the system.

    A run returns it several times. The memory of the next run then needs page faults, which take a tenth of its time.
    """
    from fedcohort.host import memory  # noqa: PLC0415 - after the session's import hook

    return_memory_to_system = memory.return_memory_to_system
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory, "return_memory_to_system", lambda: None)
        yield return_memory_to_system


@pytest.fixture(scope="module", autouse=True)
def _rounds_with_checkpoint(request: pytest.FixtureRequest) -> Iterator[None]:
    """Write checkpoints of small runs in each round where a module stops or resumes runs, elsewhere in the last."""
    import run_harness  # noqa: PLC0415 - after the session's import hook

    stops_runs = re.search("resum|kill|halt|interrupt|checkpoint|restart|stop", request.path.read_text())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            run_harness, "small_checkpoints", run_harness.EACH_ROUND if stops_runs else run_harness.LAST_ROUND
        )
        yield


@pytest.fixture
def caplog(request: pytest.FixtureRequest) -> Iterator[pytest.LogCaptureFixture]:
    """Yield pytest's `caplog`, with a handler that only the tests that use it have.

    `-p no:logging` disables pytest's own, which adds handlers to 50 loggers before each test and removes them after it.
    """
    handler = log_capture.LogCaptureHandler()
    request.node.stash[log_capture.caplog_handler_key] = handler
    request.node.stash[log_capture.caplog_records_key] = {"call": handler.records}
    fixture = pytest.LogCaptureFixture(request.node, _ispytest=True)
    with log_capture.catching_logs(handler):
        yield fixture
    fixture._finalize()


def pytest_make_parametrize_id(config: object, val: object, argname: str) -> str | None:
    """Name parameters of type bytes by their argument: compressed bytes contain the time, and test ids must not."""
    return argname if isinstance(val, bytes) else None
