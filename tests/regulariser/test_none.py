"""No regulariser has no hook."""

from config_options import make_component


def test_the_gradient_is_unchanged() -> None:
    assert make_component("regulariser", "none").hooks == ()
