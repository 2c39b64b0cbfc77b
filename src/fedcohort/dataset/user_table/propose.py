"""Look at a user's files, and propose the options of `dataset=folder` with the reason for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fedcohort.dataset.problems import Problems
from fedcohort.dataset.user_table.find import find, load_tables
from fedcohort.dataset.user_table.input_decisions import decide_inputs, decide_missing
from fedcohort.dataset.user_table.look import Look, OpenQuestion


@dataclass(frozen=True)
class Proposal:
    """What the files hold, and the options that are proposed.

    Attributes:
        files: a line for each table: its rows and how it is written.
        columns: name, kind and details of each column of the training table.
        decisions: what must be decided.
    """

    files: Sequence[str]
    columns: Sequence[tuple[str, str, str]]
    decisions: Sequence[OpenQuestion]

    @property
    def options(self) -> dict[str, object]:
        """All proposed values, by option."""
        return {name: value for decision in self.decisions for name, value in decision.options.items()}


def propose(path: str, typed: Mapping[str, str]) -> Proposal:
    """Look at the files of `path`.

    Args:
        path: a folder or a table, as `dataset.path`.
        typed: the values of options that the user has typed, by option; nothing is proposed for these.

    Raises:
        DataError: if no table can be read, and where no column can hold the labels.
    """
    files, problems = find(path), Problems()
    is_cut = files.test is None and not (files.images is not None and (files.images / "test").is_dir())
    frames = load_tables(path, is_cut, True, typed.get("dataset.decimal", "auto"), problems)
    problems.raise_all()
    look = Look(frames, typed, is_cut)
    lines = [", ".join([f"{frame.where}: {frame.table.num_rows:,} rows", *frame.notes]) for frame in frames]
    decisions = [
        replace(decision, options={name: value for name, value in decision.options.items() if name not in typed})
        for decision in (*look.decide_roles(), *decide_inputs(look), *decide_missing(look))
    ]
    return Proposal(lines, [look.describe(name) for name in frames[0].names], decisions)
