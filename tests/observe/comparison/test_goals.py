"""The targets that can be asked for: a share has no value outside [0, 1]."""

import pytest

from compare_toy import ACC
from fedcohort.command.compare import parse as parse_words
from fedcohort.errors import OptionError
from fedcohort.observe.comparison.goals import parse


@pytest.mark.parametrize("metric", [ACC, "server_val/acc", "clients/acc_worst5", "test/acc_worst_group"])
@pytest.mark.parametrize("target", ["90", "1.5", "-0.1"])
def test_a_share_refuses_a_target_that_it_can_never_have(metric: str, target: str) -> None:
    with pytest.raises(OptionError, match=rf"^target must be a number in \[0, 1\], as {metric} .*, got '{target}'$"):
        parse(target, metric)


@pytest.mark.parametrize(
    ("metric", "target"), [(ACC, "0.9"), (ACC, "1"), ("test/loss", "1.5"), ("clients/acc_var", "90"), ("time/x", "90")]
)
def test_what_can_be_reached_is_a_target(metric: str, target: str) -> None:
    assert parse(target, metric) == float(target)


def test_the_command_refuses_it_before_a_run_is_read() -> None:
    with pytest.raises(OptionError, match=r"^target must be a number in \[0, 1\]"):
        parse_words(["metric=test/acc,test/loss", "target=90"])
    assert parse_words(["metric=test/loss,test/acc", "target=90"]).target == "90"
