"""Small raw datasets: folders and files in the format of their publishers."""

import json
from pathlib import Path

import numpy as np

from fedcohort.dataset.raw.pieces import TablePiece, write_tables
from image_tables import encode_image, random_images


def save_image(path: Path, seed: int = 0, shape: tuple[int, int, int] = (3, 12, 10), kind: str = "PNG") -> np.ndarray:
    """Save an image, and return its pixels."""
    pixels: np.ndarray = random_images(1, shape, seed)[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_image(pixels, kind)["bytes"])
    return pixels


def prepare_tables(pieces: list[TablePiece], destination: Path, unique: str = "") -> dict[str, int]:
    return write_tables(pieces, destination, lambda part, n_done, count: None, unique)


def write_celeba(folder: Path) -> Path:
    """Write six training images of celebrity 7, then five images each of 8 and 9."""
    rows = [(7, 0)] * 6 + [(8, 1)] * 5 + [(9, 2)] * 5
    names = [f"{i + 1:06}.jpg" for i in range(len(rows))]
    for i, name in enumerate(names):
        save_image(folder / "img_align_celeba" / name, i, kind="JPEG")
    values = [f"{name} {1 - 2 * (i % 2):2d} -1" for i, name in enumerate(names)]
    (folder / "list_attr_celeba.txt").write_text("\n".join(["16", "Smiling Male", *values]) + "\n")
    (folder / "identity_CelebA.txt").write_text(
        "".join(f"{name} {client_ids}\n" for name, (client_ids, _) in zip(names, rows, strict=True))
    )
    (folder / "list_eval_partition.txt").write_text(
        "".join(f"{name} {part}\n" for name, (_, part) in zip(names, rows, strict=True))
    )
    return folder


def write_waterbirds(folder: Path) -> Path:
    """Write four images of each part; the first row is a water bird on land."""
    lines = ["img_id,img_filename,y,split,place,place_filename"]
    for i in range(12):
        name = f"00{i % 3}.Bird/bird_{i}.jpg"
        save_image(folder / name, i, kind="JPEG")
        lines.append(f"{i},{name},{(i + 1) % 2},{i // 4},{i // 2 % 2},/o/ocean/{i}.jpg")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")
    return folder


def write_leaf(folder: Path, name: str = "train/all_data_0.json", **users: tuple[list[object], list[object]]) -> Path:
    """Write a LEAF file with x and y of each user."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {user: {"x": x, "y": y} for user, (x, y) in users.items()}
    counts = [len(y) for _, y in users.values()]
    path.write_text(json.dumps({"users": list(users), "num_samples": counts, "user_data": data}))
    return folder
