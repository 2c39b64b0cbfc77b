"""Run a law on many cheap cases within one test, because pytest's own work on a test takes milliseconds."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]


def for_all(names: str, values: Iterable[Any], labels: Iterable[str] = ()) -> Callable[[Test], Test]:
    """Return a decorator that calls a test with each value, like `pytest.mark.parametrize`, but as one test.

    Fixtures are shared by the values. A failure names the value in a note, after the message. The test has its
    lists of labels and values as an attribute `cases`, from which `tests/mutants.py` removes those of other options.

    Args:
        names: the parameter, or several parameters separated by commas, whose values are tuples.
        values: the values.
        labels: of the values in the note; none for their `repr`.
    """
    parameters = [name.strip() for name in names.split(",")]
    values = list(values)
    cases = list(zip(list(labels) or list(map(repr, values)), values, strict=True))

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run_cases(*args: Any, **fixtures: Any) -> None:
            for text, value in cases:
                arguments = dict(zip(parameters, value if len(parameters) > 1 else (value,), strict=True))
                try:
                    test(*args, **fixtures, **arguments)
                except Exception as error:
                    error.add_note(f"in the case {names} = {text}")
                    raise

        fixture_parameters = [parameter for name, parameter in signature.parameters.items() if name not in parameters]
        vars(run_cases)["cases"] = [*getattr(test, "cases", ()), cases]
        vars(run_cases)["__signature__"] = signature.replace(parameters=fixture_parameters)
        return run_cases

    return decorate
