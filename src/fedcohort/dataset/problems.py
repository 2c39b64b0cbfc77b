"""Problems of tables, collected so that a user reads all of them in one message."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fedcohort.errors import DataError


class TableProblem(DataError):
    """A problem at one place of a table.

    Attributes:
        what: the option, the file, the column, the row and what is wrong there.
        remedy: the action that solves the problem; empty if `what` says it.
    """

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what + remedy)
        self.what, self.remedy = what, remedy


class SeveralProblems(DataError):
    """Several problems in one message: one line per problem, then each remedy once."""

    def __init__(self, problems: Sequence[DataError], advice: str = "") -> None:
        self.problems = tuple(problems)
        lines = [error.what if isinstance(error, TableProblem) else str(error) for error in problems]
        remedies = [error.remedy.lstrip("; ") for error in problems if isinstance(error, TableProblem)]
        text = [f"the data have {len(lines)} problems:", *(f"  {n}. {line}" for n, line in enumerate(lines, 1))]
        super().__init__("\n".join([*text, *filter(None, dict.fromkeys([*remedies, advice]))]))


class Problems:
    """The problems that independent steps find; `raise_all` raises them together."""

    def __init__(self, advice: str = "") -> None:
        """Start without problems. advice: a last line for messages with several problems."""
        self._errors: dict[str, DataError] = {}
        self._advice = advice

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Keep the `DataError` of the block instead of raising it; equal messages count once."""
        try:
            yield
        except SeveralProblems as error:
            self._errors.update({str(problem): problem for problem in error.problems})
        except DataError as error:
            self._errors[str(error)] = error

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self._errors)

    def add(self, error: DataError) -> None:
        """Keep a problem that no step raised."""
        self._errors[str(error)] = error

    def raise_all(self) -> None:
        """Raise what was collected: the problem itself where there is one, otherwise `SeveralProblems`."""
        errors = list(self._errors.values())
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise SeveralProblems(errors, self._advice)
