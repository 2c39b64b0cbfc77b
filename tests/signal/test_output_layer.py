"""output_layer: the networks that have one."""

from types import SimpleNamespace

import pytest

from fedcohort.component import Facts
from fedcohort.flat import Layout, TensorBlock
from fedcohort.signal.output_layer import has_output_layer


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [([(6, 4), (6,), (3, 6), (3,)], True), ([(3, 6), (3,), (6,)], False), ([(6, 4), (6,)], False), ([(3, 6)], False)],
)
def test_the_network_must_end_with_the_classes(shapes: list[tuple[int, ...]], expected: bool) -> None:
    layout = Layout(tuple(TensorBlock("w", shape, 0) for shape in shapes), (), ())
    federation = SimpleNamespace(n_classes=3)
    assert has_output_layer(Facts(None, {}, federation, layout=layout)) is expected
    assert has_output_layer(Facts(None, {}, federation)) is None
