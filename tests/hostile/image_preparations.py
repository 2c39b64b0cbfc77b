"""Raw folders of images that `fedcohort prepare` must reject, or take with a notice, over its four kinds of them."""

import os
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from PIL import Image

from hostile.harness import Case
from hostile.preparations import Build, case, link, pipe, raw_json
from raw_dataset_files import save_image, write_celeba, write_waterbirds


def images(raw: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        save_image(raw / name, number)
    return raw


def overwrite_image(name: str, content: bytes) -> Build:
    """Return a build of two classes with `content` for one of the images."""

    def build(raw: Path) -> None:
        images(raw, "a/0.png", "b/0.png")
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / name).write_bytes(content)

    return build


def png(width: int, height: int, data: bytes = b"") -> bytes:
    """Return a PNG whose header claims a size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", data or zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    body = (struct.pack(">I", len(c)) + kind + c + struct.pack(">I", zlib.crc32(kind + c)) for kind, c in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def deep_png(raw: Path) -> None:
    images(raw, "a/0.png")
    (raw / "b").mkdir()
    Image.new("I;16", (4, 4)).save(raw / "b" / "0.png")


def image_contents() -> Mapping[str, tuple[bytes, str]]:
    return {
        "an empty image": (b"", "is empty"),
        "a text": (b"hello", "can't be read as an image"),
        "a cut image": (png(4, 4)[:40], "can't be read as an image"),
        "a header alone": (b"\x89PNG\r\n\x1a\n", "can't be read as an image"),
        "a false checksum": (png(4, 4)[:29] + b"xxxx" + png(4, 4)[33:], "can't be read as an image"),
        "a size of no pixels": (png(0, 0), "can't be read as an image"),
        "a size beyond its data": (png(3000, 3000), "can't be read as an image"),
        "a size of 4 gigapixels": (png(2**16, 2**16), "can't be read as an image"),
        "a size of 2^31": (png(2**31 - 1, 1), "can't be read as an image"),
        "data that are not compressed": (png(4, 4, b"abc"), "can't be read as an image"),
        "a web page": (b"<html><body>404</body></html>", "can't be read as an image"),
        "a pointer of Git LFS": (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            "can't be read as an image",
        ),
        "a JPEG's beginning": (b"\xff\xd8\xff\xe0" + bytes(50), "can't be read as an image"),
        "a bitmap's beginning": (b"BM" + bytes(60), "can't be read as an image"),
        "a WebP's beginning": (b"RIFF\x10\0\0\0WEBPVP8 ", "can't be read as an image"),
    }


def imagefolders() -> list[Case]:
    kind = "imagefolder"
    cases = [case(name, kind, overwrite_image("b/1.png", c), text) for name, (c, text) in image_contents().items()]
    return [
        *cases,
        case("16 bits a pixel", kind, deep_png, "more than 8 bits per pixel"),
        case("no class", kind, lambda raw: None, "has no folders of images"),
        case("images without a class", kind, lambda raw: images(raw, "0.png", "1.png"), "has no folders of images"),
        case("a class without images", kind, lambda raw: (raw / "a").mkdir(), "has no folders of images"),
        case("other files alone", kind, lambda raw: raw_json(raw, "x", "a/b.txt"), "holds no images"),
        case("a class of classes", kind, lambda raw: images(raw, "a/b/0.png"), "holds no images"),
        case("train without classes", kind, lambda raw: images(raw, "train/0.png"), "has no folders of images"),
        case(
            "test without classes", kind, lambda raw: images(raw, "train/a/0.png", "test/0.png"), "test has no folders"
        ),
        case(
            "val and valid", kind, lambda raw: images(raw, "train/a/0.png", "val/a/1.png", "valid/a/1.png"), "keep one"
        ),
        case("a pipe", kind, lambda raw: (images(raw, "a/0.png"), pipe(raw / "a" / "1.png")), "neither a file nor"),
        case("a folder 1.png", kind, lambda raw: images(raw, "a/0.png", "a/1.png/2.png"), "is a folder"),
        case(
            "a link out", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "a/1.png", "/etc/passwd")), "leads out"
        ),
        case("a device", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "a/1.png", "/dev/zero")), "leads out"),
        case("a link to itself", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "a/1.png", "1.png")), "be read"),
        case("a broken link", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "a/1.png", "2.png")), "has no a/1"),
        case("a class a link out", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "b", "/etc")), "leads out"),
        case("a class a link up", kind, lambda raw: (images(raw, "a/0.png"), link(raw / "b", raw.parent)), "leads out"),
        case("a name in Latin-1", kind, bad_image_name, "is no UTF-8 text"),
        case("size=0", kind, lambda raw: images(raw, "a/0.png"), "size must be", options=("size=0",)),
        case("size=-3", kind, lambda raw: images(raw, "a/0.png"), "size must be", options=("size=-3",)),
        case("size=1e3", kind, lambda raw: images(raw, "a/0.png"), "size must be", options=("size=1e3",)),
        case(
            "size of 5000 digits",
            kind,
            lambda raw: images(raw, "a/0.png"),
            "size must be",
            options=("size=" + "9" * 5000,),
        ),
        case(
            "other files beside",
            kind,
            overwrite_image("b/1.gif", b"GIF"),
            "left out, the first is",
            "'1.gif'",
            accepted=True,
        ),
        case("folders in a class", kind, lambda raw: images(raw, "a/0.png", "a/b/1.png"), "'b'", accepted=True),
        case("classes beside train", kind, lambda raw: images(raw, "train/a/0.png", "b/1.png"), "'b'", accepted=True),
    ]


def bad_image_name(raw: Path) -> None:
    images(raw, "a/0.png")
    os.rename(raw / "a" / "0.png", os.fsencode(raw / "a") + b"/\xe9.png")


def edit_file(make: Callable[[Path], Path], name: str, change: Callable[[str], str | bytes]) -> Build:
    """Return a build of a good source whose file `name` is changed."""

    def build(raw: Path) -> None:
        file = make(raw) / name
        text = change(file.read_text())
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    return build


def replace_file(make: Callable[[Path], Path], name: str, make_file: Callable[[Path], object]) -> Build:
    def build(raw: Path) -> None:
        file = make(raw) / name
        file.unlink()
        make_file(file)

    return build


def swap(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


def celebas() -> list[Case]:
    attributes, people, parts = "list_attr_celeba.txt", "identity_CelebA.txt", "list_eval_partition.txt"
    first = "000001.jpg  1 -1"

    def change_file(
        file: str, name: str, change: Callable[[str], str | bytes], *texts: str, accepted: bool = False
    ) -> Case:
        return case(f"{file}: {name}", "celeba", edit_file(write_celeba, file, change), *texts, accepted=accepted)

    return [
        change_file(attributes, "empty", lambda text: "", "names no image"),
        change_file(attributes, "header alone", lambda text: "0\nSmiling Male\n", "names no image"),
        change_file(
            attributes, "cut off", lambda text: "\n".join(text.splitlines()[:9]) + "\n", "the first line says '16'"
        ),
        change_file(attributes, "no count", lambda text: "\n".join(text.splitlines()[1:]), "values of 1 or -1"),
        change_file(attributes, "an image twice", lambda text: text + first + "\n", "000001.jpg occurs in line"),
        change_file(attributes, "an attribute twice", swap("Smiling Male", "Male Male"), "'Male' occurs twice"),
        change_file(attributes, "attribute image", swap("Smiling", "image"), "'image' occurs twice, or has the name"),
        change_file(attributes, "attribute celeb_id", swap("Smiling", "celeb_id"), "'celeb_id' occurs twice, or has"),
        change_file(attributes, "value 0", swap(first, "000001.jpg 0 -1"), "of 1 or -1"),
        change_file(attributes, "value missing", swap(first, "000001.jpg -1"), "of 1 or -1"),
        change_file(
            attributes,
            "an image that is not there",
            swap(first, "zzz.jpg -1 -1"),
            "zzz.jpg is missing in identity_CelebA.txt",
        ),
        change_file(attributes, "not UTF-8", lambda text: text.encode() + b"\xe9", "is no UTF-8 text"),
        change_file(attributes, "commas", lambda text: text.replace(" ", ","), "of 1 or -1"),
        change_file(people, "empty", lambda text: "", "is missing in identity_CelebA.txt"),
        change_file(people, "an image twice", lambda text: text + "000001.jpg 9\n", "000001.jpg occurs in line"),
        change_file(people, "a text", swap("000001.jpg 7", "000001.jpg Ann"), "identity a whole number, got 'Ann'"),
        change_file(
            people,
            "identity of 40 digits",
            swap("000001.jpg 7", "000001.jpg " + "9" * 40),
            "identity a whole number, got '999",
        ),
        change_file(
            people, "identity a superscript", swap("000001.jpg 7", "000001.jpg ²"), "identity a whole number, got '²'"
        ),
        change_file(
            people, "three words", swap("000001.jpg 7", "000001.jpg 7 7"), "identity a whole number, got '7 7'"
        ),
        change_file(
            people,
            "an image more",
            lambda text: text + "zzz.jpg 9\n",
            "left out, the first is",
            "'zzz.jpg'",
            accepted=True,
        ),
        change_file(parts, "part 3", swap("000001.jpg 0", "000001.jpg 3"), "the part must be 0, 1 or 2, got '3'"),
        change_file(parts, "an image twice", lambda text: text + "000001.jpg 1\n", "000001.jpg occurs in line"),
        case(
            "attributes a pipe",
            "celeba",
            replace_file(write_celeba, attributes, os.mkfifo),
            "neither a file nor a folder",
        ),
        case("identities a folder", "celeba", replace_file(write_celeba, people, Path.mkdir), "Is a directory"),
        case(
            "identities missing",
            "celeba",
            replace_file(write_celeba, people, lambda file: None),
            "has no identity_CelebA.txt",
        ),
        case(
            "an image a pipe",
            "celeba",
            replace_file(write_celeba, "img_align_celeba/000001.jpg", os.mkfifo),
            "neither a file nor",
        ),
        case(
            "an image gone",
            "celeba",
            replace_file(write_celeba, "img_align_celeba/000002.jpg", lambda f: None),
            "has no img_",
        ),
        case("nothing", "celeba", lambda raw: None, "has no img_align_celeba"),
    ]


def all_birds() -> list[Case]:
    name, first = "metadata.csv", "0,000.Bird/bird_0.jpg,1,0,0,"

    def change_metadata(title: str, change: Callable[[str], str | bytes], *texts: str, accepted: bool = False) -> Case:
        return case(title, "waterbirds", edit_file(write_waterbirds, name, change), *texts, accepted=accepted)

    return [
        change_metadata("empty", lambda text: "", "must have one column"),
        change_metadata("header alone", lambda text: text.splitlines()[0], "names no image"),
        change_metadata("no column y", swap(",y,", ",why,"), "must have one column 'y'"),
        change_metadata("column y twice", swap("place_filename", "y"), "must have one column 'y'"),
        change_metadata("semicolons", lambda text: text.replace(",", ";"), "must have one column"),
        change_metadata(
            "an image twice", lambda text: text + text.splitlines()[1] + "\n", "'000.Bird/bird_0.jpg' occurs in line"
        ),
        change_metadata(
            "an image by another path", lambda t: t + t.splitlines()[1].replace("000.B", "./000.B"), "'./000.Bird"
        ),
        change_metadata("y a text", swap(first, "0,000.Bird/bird_0.jpg,yes,0,0,"), "y is 'yes'"),
        change_metadata("y 2", swap(first, "0,000.Bird/bird_0.jpg,2,0,0,"), "y is '2'"),
        change_metadata("split 9", swap(first, "0,000.Bird/bird_0.jpg,1,9,0,"), "split is '9'"),
        change_metadata("a short row", swap(first + "/o/ocean/0.jpg", "0,000.Bird/bird_0.jpg,1"), "split is None"),
        change_metadata("a long row", swap(first, first + ",,,"), "more cells than the header"),
        change_metadata("no name", swap("000.Bird/bird_0.jpg", ""), "has no (no name)"),
        change_metadata("a path out", swap("000.Bird/bird_0.jpg", "../../../../etc/passwd"), "leads out"),
        change_metadata("an absolute path", swap("000.Bird/bird_0.jpg", "/etc/passwd"), "leads out"),
        change_metadata("a folder for an image", swap("000.Bird/bird_0.jpg", "000.Bird"), "is a folder"),
        change_metadata("a zero byte in a name", swap("000.Bird/bird_0.jpg", "a\0b.jpg"), "null byte"),
        change_metadata("a name of 300 characters", swap("000.Bird/bird_0.jpg", "a" * 300), "name too long"),
        change_metadata("a cell of 200 KB", swap("/o/ocean/0.jpg", "o" * 200_000), "is no CSV"),
        change_metadata("an open quote", swap("000.Bird/bird_0.jpg", '"000.Bird/bird_0.jpg'), "is no CSV"),
        change_metadata("not UTF-8", lambda text: text.encode() + b"\xe9", "is no UTF-8 text"),
        change_metadata("UTF-16", lambda text: text.encode("utf-16"), "is no UTF-8 text"),
        case(
            "metadata a pipe",
            "waterbirds",
            replace_file(write_waterbirds, name, os.mkfifo),
            "neither a file nor a folder",
        ),
        case("metadata a folder", "waterbirds", replace_file(write_waterbirds, name, Path.mkdir), "is a folder"),
        case(
            "metadata a link out",
            "waterbirds",
            replace_file(write_waterbirds, name, lambda f: link(f, "/etc/passwd")),
            "leads out",
        ),
        case("nothing", "waterbirds", lambda raw: None, "has no metadata.csv"),
    ]


def spawrious() -> list[Case]:
    first = "0/snow/corgi/0.png"
    return [
        case("nothing", "spawrious", lambda raw: None, "has no images"),
        case(
            "an unknown place",
            "spawrious",
            lambda raw: images(raw, first, "0/moon/corgi/0.png"),
            "is an unknown folder",
        ),
        case(
            "an unknown breed", "spawrious", lambda raw: images(raw, first, "0/snow/cat/0.png"), "is an unknown folder"
        ),
        case("no breed", "spawrious", lambda raw: images(raw, "0/snow/0.png"), "has no images"),
        case("other files alone", "spawrious", lambda raw: raw_json(raw, "x", "0/snow/corgi/a.txt"), "holds no images"),
        case("a third half", "spawrious", lambda raw: images(raw, first, "2/snow/corgi/0.png"), "'2'", accepted=True),
        case(
            "a pipe", "spawrious", lambda raw: (images(raw, first), pipe(raw / "0/snow/corgi/1.png")), "neither a file"
        ),
        case("half a link out", "spawrious", lambda raw: (images(raw, first), link(raw / "1", "/etc")), "leads out"),
    ]


def cases() -> list[Case]:
    """List the cases by kind."""
    return [*imagefolders(), *celebas(), *all_birds(), *spawrious()]
