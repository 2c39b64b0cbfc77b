"""FedDiverse's preset federations, and small tables in the layout of their datasets."""

from pathlib import Path

import numpy as np

from fedcohort.dataset.breeds import BREEDS, PLACES
from image_tables import encode_image, random_images, write_image_table

FEDDIVERSE = {  # how many clients have mainly class imbalance, attribute imbalance and spurious correlation
    "waterbirds_dist": (3, 2, 25),
    "spawrious_gsc": (4, 4, 16),
    "spawrious_gci": (16, 4, 4),
    "spawrious_gai": (4, 17, 4),
    "spawrious4": (4, 4, 17),
    "spawrious_gci100": (68, 16, 16),
}


def write_spawrious(folder: Path, images_per_pair: int) -> str:
    """Write `images_per_pair` small images of every breed at the beach and in the snow; other places have none."""
    pairs = [(breed, place) for breed in BREEDS for place in (PLACES[0], PLACES[-1]) for _ in range(images_per_pair)]
    images = [encode_image(image) for image in random_images(len(pairs), (3, 8, 8))]
    write_image_table(folder, "train", image=images, label=[b for b, _ in pairs], place=[p for _, p in pairs])
    return str(folder)


def write_waterbirds(folder: Path, scale: int = 20) -> str:
    """Write small Waterbirds tables: group sizes divided by `scale`, and a balanced validation part."""
    groups = {"train": (3498, 184, 56, 1057), "valid": (200, 200, 200, 200), "test": (2255, 2255, 642, 642)}
    for part, sizes in groups.items():
        pair = np.repeat(np.arange(4), np.array(sizes) // scale)
        images = [encode_image(image) for image in random_images(len(pair), (3, 8, 8))]
        write_image_table(folder, part, image=images, label=(pair // 2).tolist(), place=(pair % 2).tolist())
    return str(folder)
