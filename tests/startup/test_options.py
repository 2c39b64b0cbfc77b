"""Ranges of options that belong to no component."""

import pytest

from fedcohort.errors import OptionError
from fedcohort.host import processor
from fedcohort.startup import options
from run_harness import compose_overrides

BF16 = "engine.precision=bf16"


@pytest.mark.parametrize(
    ("has_bf16", "overrides"),
    [(True, (BF16,)), (None, (BF16,)), (False, ("seed=1",)), (False, (BF16, "engine.force=true"))],
)
def test_bf16_requires_a_processor_with_bf16(
    monkeypatch: pytest.MonkeyPatch, has_bf16: bool | None, overrides: tuple[str, ...]
) -> None:
    monkeypatch.setattr(processor, "has_bf16", lambda: has_bf16)
    options.check_all_options(compose_overrides(*overrides).config)


def test_emulated_bf16_is_rejected_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "has_bf16", lambda: False)
    with pytest.raises(
        OptionError, match=r"engine.precision must be float32 on this processor, which lacks bf16 .*got"
    ):
        options.check_all_options(compose_overrides(BF16).config)


def test_tf32_requires_a_gpu() -> None:
    with pytest.raises(OptionError, match=r"engine.precision must be float32 or bf16 with trainer=cpu.*got 'tf32'"):
        options.check_all_options(compose_overrides("engine.precision=tf32").config)
