"""Images and lists of numbers in a user's own tables, which `dataset=folder` must reject, or take with a notice."""

import struct
from dataclasses import replace
from typing import Any

import pyarrow as pa

from folder_tables import set_value
from hostile.harness import Case
from hostile.tables import LIST_COLUMN, N, table
from image_tables import encode_image, random_images

IMAGES = [encode_image(image) for image in random_images(N, (1, 8, 8))]


def images(name: str, values: Any, *expected: str, overrides: str = "", **case_options: Any) -> Case:
    return table(
        name, {"x": None, "image": values}, *expected, overrides=f"dataset.features=image {overrides}", **case_options
    )


def bitmap(width: int, height: int) -> dict[str, bytes]:
    """Return a bitmap of one bit a pixel, all of one colour, as a column of images holds it."""
    stride = (width + 31) // 32 * 4
    head = struct.pack("<2sIHHI", b"BM", 62 + stride * height, 0, 0, 62)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 1, 0, stride * height, 0, 0, 2, 0)
    return {"bytes": head + info + b"\0\0\0\0\xff\xff\xff\0" + bytes(stride * height)}


def image_tables() -> list[Case]:
    other_image, wide = (
        encode_image(random_images(1, (1, 9, 8))[0]),
        [encode_image(image) for image in random_images(N, (1, 9, 8))],
    )
    colour = encode_image(random_images(1, (3, 8, 8))[0])

    def break_image(content: bytes | None) -> list[Any]:
        return set_value(IMAGES, 5, {"bytes": content})

    return [
        images("an image of another size", set_value(IMAGES, 5, other_image), "row 5 is an image of (1, 9, 8)"),
        images("a colour image among grey ones", set_value(IMAGES, 5, colour), "row 5 is an image of (3, 8, 8)"),
        images("an image that is missing", set_value(IMAGES, 5, None), "row 5 is empty"),
        images("an image without bytes", break_image(None), "row 5 is empty"),
        images("an image of no bytes", break_image(b""), "row 5 is empty"),
        images("an image that is a text", break_image(b"hello"), "row 5 can't be read as an image"),
        images("an image that is cut off", break_image(IMAGES[5]["bytes"][:40]), "row 5 can't be read as an image"),
        images("an image that is a web page", break_image(b"<html></html>"), "row 5 can't be read as an image"),
        images("an image's beginning alone", break_image(b"\xff\xd8\xff\xe0"), "row 5 can't be read as an image"),
        images(
            "an image with a damaged header",
            break_image(IMAGES[5]["bytes"][:20] + bytes(40)),
            "row 5 can't be read as an image",
        ),
        images("paths without bytes", [{"path": f"{k}.png"} for k in range(N)], "must hold lists of numbers or images"),
        images("paths as texts", [f"{k}.png" for k in range(N)], "must hold lists of numbers or images"),
        images("encoded bytes without a struct", [image["bytes"] for image in IMAGES], "must hold lists of numbers or"),
        images("bytes that are texts", [{"bytes": "x"}] * N, "must hold lists of numbers or images"),
        images("images all equal", [IMAGES[0]] * N, "all 40 training samples are the same"),
        images(
            "test images of another size", IMAGES, "a sample has the shape [1, 9, 8]", test={"x": None, "image": wide}
        ),
        images("test images are lists", IMAGES, "a sample has the shape", test={"x": None, "image": LIST_COLUMN}),
        images(
            "images of 80 megapixels in 4 GB",
            [bitmap(9000, 8900)] * N,
            *("images of", "GB are available", "size=64"),
            memory_bytes=4 * 2**30,
        ),
        images(
            "an image of 2 gigapixels",
            set_value(
                IMAGES,
                5,
                {"bytes": bitmap(8, 8)["bytes"][:18] + struct.pack("<ii", 50_000, 50_000) + bitmap(8, 8)["bytes"][26:]},
            ),
            "row 5 can't be read as an image",
        ),
        images(
            "images standardised", IMAGES, "pixels must be", overrides="dataset.pixels=uint8 dataset.standardise=train"
        ),
        images("images with a shape of another size", IMAGES, "must have 64 values", overrides="dataset.shape=[1,3,3]"),
        images("images, and leave_out", IMAGES, "leave_out must be", overrides="dataset.leave_out=[x]"),
        images("lists of two lengths", set_value(LIST_COLUMN, 5, [1.0]), "row 5 has a list of another length"),
        images("an empty list", set_value(LIST_COLUMN, 0, []), "row 0"),
        images("all lists empty", [[]] * N, "row 0"),
        images("a list that is missing", set_value(LIST_COLUMN, 5, None), "row 5 is empty"),
        images(
            "a list with a missing number", set_value(LIST_COLUMN, 5, [1.0, None]), "row 5 has a value that is missing"
        ),
        images(
            "a list with NaN",
            set_value(LIST_COLUMN, 5, [1.0, float("nan")]),
            "row 5 has a value that is missing, NaN or inf",
        ),
        images(
            "a list with an infinite number",
            set_value(LIST_COLUMN, 5, [1.0, float("inf")]),
            "row 5 has a value that is missing",
        ),
        images("a list beyond float32", set_value(LIST_COLUMN, 5, [1.0, 1e300]), "row 5 has a value that is missing"),
        images(
            "a list of integers with a missing one",
            set_value([[k, 1] for k in range(N)], 5, [1, None]),
            "row 5 has a value",
        ),
        images("lists of texts", [["a", "b"]] * N, "must hold lists of numbers or images"),
        images("lists of structs", [[{"a": 1}]] * N, "must hold lists of numbers or images"),
        images("lists of truth values", [[k % 2 == 0, True] for k in range(N)], "2: image", accepted=True),
        images(
            "ragged lists of lists",
            set_value([[[1.0], [float(k)]] for k in range(N)], 5, [[1.0]]),
            "row 5 has a list of an",
        ),
        images(
            "ragged lists inside",
            set_value([[[1.0], [float(k)]] for k in range(N)], 5, [[1.0], [1.0, 2.0]]),
            "row 5 has a",
        ),
        images(
            "test lists of another length",
            LIST_COLUMN,
            "a sample has the shape [1]",
            test={"x": None, "image": [[1.0]] * N},
        ),
        images(
            "lists of decimals", pa.array(LIST_COLUMN).cast(pa.list_(pa.decimal128(20, 5))), "2: image", accepted=True
        ),
        images("lists of int64 beyond float32's digits", [[2**60 + k, k] for k in range(N)], "2: image", accepted=True),
        images(
            "a list with a missing number, filled",
            set_value(LIST_COLUMN, 5, [1.0, None]),
            "cells filled",
            accepted=True,
            overrides="dataset.missing=mean",
        ),
    ]


def cases() -> list[Case]:
    """List the cases."""
    return [replace(case, name=f"images: {case.name}") for case in image_tables()]
