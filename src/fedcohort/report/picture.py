"""A figure that is embedded in a page, so that the page is a single file."""

import base64
from dataclasses import dataclass
from pathlib import Path

PIXEL = 96 / 150  # CSS pixels per pixel of a PNG with 200 dots per inch: text of 8 points has 14 pixels
SMALLEST = 0.68  # share of a figure's width below which its text is too small


@dataclass(frozen=True)
class Picture:
    """A PNG file with its caption.

    Attributes:
        path: the file.
        caption: describes the figure, also as its alternative text.
    """

    path: Path
    caption: str

    @property
    def width(self) -> int:
        """Width on the page in CSS pixels, from the header of the PNG."""
        with self.path.open("rb") as file:
            return int(int.from_bytes(file.read(20)[16:], "big") * PIXEL)

    @property
    def min_width_px(self) -> int:
        """Width in CSS pixels below which the page scrolls rather than shrinks the figure."""
        return int(self.width * SMALLEST)

    @property
    def data(self) -> str:
        """The file as a data URL."""
        return "data:image/png;base64," + base64.b64encode(self.path.read_bytes()).decode()
