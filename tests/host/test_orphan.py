"""A process that `multiprocessing` started ends with its parent, by the kernel or by watching it."""

import multiprocessing
import os
import select
import signal

import pytest

from fedcohort.host import orphan


@pytest.mark.parametrize("kernel_signals", [True, False])
def test_a_child_ends_with_its_killed_parent(monkeypatch: pytest.MonkeyPatch, kernel_signals: bool) -> None:
    """The pipe ends when its last writer, the child, is gone. Other platforms than Linux have no signal for it."""
    if not kernel_signals:
        monkeypatch.setattr(orphan, "end_when_forking_thread_ends", lambda: None)
    read_end, write_end = os.pipe()

    def work() -> None:
        orphan.end_when_parent_ends()
        orphan.end_when_parent_ends()  # a process runs many jobs, and each of them calls it
        os.write(write_end, b"x")
        signal.pause()

    parent = os.fork()
    if parent == 0:
        multiprocessing.get_context("fork").Process(target=work).start()
        os.close(write_end)
        signal.pause()
    os.close(write_end)
    assert os.read(read_end, 1) == b"x"
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert select.select([read_end], [], [], 60)[0], "the child outlives its parent"
    assert os.read(read_end, 1) == b""
    os.close(read_end)


def test_a_process_started_by_hand_watches_no_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)
    monkeypatch.setattr(orphan, "_WATCHING_PIDS", [])
    orphan.end_when_parent_ends()
    assert not orphan._WATCHING_PIDS
