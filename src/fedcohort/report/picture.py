"""A figure inside a page, so that the page is one file."""

import base64
from dataclasses import dataclass
from pathlib import Path

PIXEL = 96 / 150  # CSS pixels of one pixel of a PNG that is drawn with 150 dots per inch
SMALLEST = 0.68  # share of its own width below which a figure can't be read


@dataclass(frozen=True)
class Picture:
    """A PNG file and what it shows.

    Attributes:
        path: the file.
        caption: what it shows, also for readers who can't see it.
    """

    path: Path
    caption: str

    @property
    def width(self) -> int:
        """Width on the page in CSS pixels, read from the PNG's header."""
        with self.path.open("rb") as file:
            return int(int.from_bytes(file.read(20)[16:], "big") * PIXEL)

    @property
    def smallest(self) -> int:
        """Width in CSS pixels below which the page scrolls instead of shrinking the figure."""
        return int(self.width * SMALLEST)

    @property
    def data(self) -> str:
        """The file as a data URL."""
        return "data:image/png;base64," + base64.b64encode(self.path.read_bytes()).decode()
