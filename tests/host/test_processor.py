"""What the system says of the processor."""

import platform
from pathlib import Path

import pytest

from fedcohort.host import processor


@pytest.mark.parametrize(
    ("text", "has_bf16"),
    [
        ("processor : 0\nflags\t\t: fpu avx2 avx512_bf16 amx_tile\n", True),
        ("processor : 0\nflags\t\t: fpu avx2 avx512f\nbugs : bf16\n", False),
        ("processor : 0\nFeatures\t: fp asimd bf16\n", True),
        ("processor : 0\n", None),
    ],
)
def test_bf16_instructions_are_detected(tmp_path: Path, text: str, has_bf16: bool | None) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert processor.has_bf16(tmp_path / "cpuinfo") is has_bf16
    assert processor.has_bf16(tmp_path / "absent") is None


def test_the_model_of_the_processor_is_its_name(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: AMD EPYC\nprocessor : 1\nmodel name\t: other\n")
    assert processor.name_processor(tmp_path / "cpuinfo") == "AMD EPYC"
    assert processor.name_processor(tmp_path / "absent") == platform.machine()
