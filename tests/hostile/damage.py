"""Damage to files: bits that are flipped, files that are cut, exchanged, or replaced by a folder or a named pipe."""

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

Damage = Callable[[Path], object]


def flip(path: Path, share: float) -> None:
    """Flip one bit of a file, `share` of the way through it."""
    data = bytearray(path.read_bytes())
    data[min(int(share * len(data)), len(data) - 1)] ^= 4
    path.write_bytes(bytes(data))


def flip_in_line(path: Path, number: int) -> None:
    """Flip one bit of a digit in a line's metrics, so that the line can still be read."""
    lines = path.read_bytes().split(b"\n")
    line = bytearray(lines[number])
    position = next(i for i in range(line.index(b"metrics"), len(line)) if chr(line[i]) in "2345678")
    line[position] ^= 1
    lines[number] = bytes(line)
    path.write_bytes(b"\n".join(lines))


def swap_lines(path: Path) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[1], lines[2] = lines[2], lines[1]
    path.write_bytes(b"\n".join(lines))


def truncate(path: Path, share: float) -> None:
    os.truncate(path, int(share * path.stat().st_size))


def replace_by(make: Damage, path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    make(path)


def copy_from(source: Path, path: Path) -> None:
    """Put another run's file in the place of this one."""
    shutil.copy(source / path.relative_to(path.parents[1] if path.parent.name == "clients" else path.parent), path)


def swap(other_path: str, path: Path) -> None:
    """Let two files of one run change places."""
    spare_path = path.with_name("spare")
    path.rename(spare_path)
    path.with_name(other_path).rename(path)
    spare_path.rename(path.with_name(other_path))


DAMAGES: dict[str, Damage] = {
    "truncated": partial(truncate, share=0.6),
    "without its last byte": lambda path: os.truncate(path, path.stat().st_size - 1),
    "a bit of its header": partial(flip, share=0),
    "a bit of its first third": partial(flip, share=0.3),
    "a bit of its middle": partial(flip, share=0.5),
    "a bit of its footer": partial(flip, share=0.98),
    "emptied": partial(truncate, share=0),
    "a byte more": lambda path: path.write_bytes(path.read_bytes() + b"\x00"),
    "a folder": partial(replace_by, Path.mkdir),
    "a link to nothing": partial(replace_by, lambda path: path.symlink_to("/nowhere/at/all")),
    "a named pipe": partial(replace_by, os.mkfifo),
    "missing": Path.unlink,
}
