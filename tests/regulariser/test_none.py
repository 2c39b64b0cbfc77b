"""No regulariser has no hook."""

from yaml_words import make


def test_the_gradient_is_unchanged() -> None:
    assert make("regulariser", "none").hooks == ()
