"""A closed pipe is noticed, and output is discarded after that."""

import os
import sys

import pytest

from fedcohort.host.standard_output import discard_standard_output, is_output_closed


def test_an_output_is_closed_once_its_reader_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert not is_output_closed()
        os.close(reader)
        assert is_output_closed()
        discard_standard_output()
        output.write("a line")
        output.flush()  # without discard_standard_output: BrokenPipeError
        assert not is_output_closed()
