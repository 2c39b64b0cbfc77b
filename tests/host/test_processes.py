"""What is said, and refused, of the processes that train."""

import pytest

from fedcohort.errors import OptionError
from fedcohort.host.processes import check, remarks


@pytest.mark.parametrize(
    ("accelerator", "num_nodes", "named"),
    [("cpu", 1, []), ("gpu", 1, ["GPUs"]), ("cpu", 2, ["machines"]), ("gpu", 2, ["GPUs", "machines"])],
)
def test_what_nobody_has_tried_is_said(accelerator: str, num_nodes: int, named: list[str]) -> None:
    lines = remarks(accelerator, num_nodes)
    assert len(lines) == bool(named)
    assert all(word in lines[0] for word in named)


def test_nobody_starts_other_machines_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "GROUP_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OptionError, match=r"trainer\.num_nodes must be 1 where neither SLURM nor torchrun"):
        check("cpu", 1, 2)
