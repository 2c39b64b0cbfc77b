"""Progress bars of a run: Rich's on a terminal, and one line of HTML in a notebook, where Rich's needs ipywidgets."""

from html import escape
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console

HTML_BAR = '<progress value="{done}" max="{total}"></progress> round {done}/{total}&emsp;{facts}'


class Bar(Protocol):
    """A bar that shows the rounds that are done and some numbers."""

    def update(self, done: int, facts: str) -> None:
        """Show that `done` rounds are done; facts: numbers with their names."""

    def stop(self) -> None:
        """Leave the bar as it is."""


class TerminalBar:
    """A bar on a terminal, with the time that has elapsed and the time that remains."""

    def __init__(self, out: "Console", total: int, done: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("round"),
            MofNCompleteColumn(),
            BarColumn(bar_width=8),
            TextColumn("{task.fields[facts]}"),
            console=out,
            refresh_per_second=4,  # a higher rate would take time from short rounds
        )
        self._task = self._bar.add_task("", total=total, completed=done, facts="")
        self._bar.start()

    def update(self, done: int, facts: str) -> None:
        """Show that `done` rounds are done."""
        self._bar.update(self._task, completed=done, facts=facts)

    def stop(self) -> None:
        """Draw the bar for the last time."""
        self._bar.stop()


class NotebookBar:
    """A bar below a notebook's cell."""

    def __init__(self, total: int, done: int) -> None:
        from IPython.display import HTML, display  # noqa: PLC0415 - installed in notebooks only

        self._html: Any = HTML
        self._total = total
        self._line: Any = display(HTML(self._text(done, "")), display_id=True)

    def update(self, done: int, facts: str) -> None:
        """Show that `done` rounds are done."""
        self._line.update(self._html(self._text(done, facts)))

    def stop(self) -> None:
        """Do nothing: the line stays."""

    def _text(self, done: int, facts: str) -> str:
        return HTML_BAR.format(done=done, total=self._total, facts=escape(facts))
