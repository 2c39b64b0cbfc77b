"""Coloured MNIST with a global spurious correlation, FedDiverse's CMNIST_GSC.

Colours are defined as in Arjovsky et al. 2019, "Invariant Risk Minimization", Sec. 5.1, and clients as in Nemeth et
al., "FedDiverse", Sec. V-A.

    y = 1 for the digits from 5 on;   a = colour, 0 red, 1 green

    x = (pixel / 255 - 0.1307) / 0.3081 in the channel of the colour, with pixel = 0 in the other channel

A client has one of three kinds of skew, with the distribution P_k(y, a):
- ci, class imbalance: `share` of one class, balanced colours.
- ai, attribute imbalance: `share` of one colour, balanced classes.
- sc, spurious correlation: balanced classes, `share` of class 0 is red and `share` of class 1 is green.

All clients have the same number of samples, as many as the classes allow; the remaining images aren't used. The
dominant class or colour alternates between the clients of a kind. With even numbers of ci and ai clients all data
together therefore have spurious correlation only. The test images have balanced classes and colours.

Departures from the papers: in IRM colours follow a noisy label, here no label is flipped. FedDiverse states neither the
number of clients of each kind nor the shares.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int64

from fedcohort import ranges
from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.base import Raw, check_clients_option
from fedcohort.dataset.image_dataset import ImageTableSpec
from fedcohort.dataset.images import ImageFormat
from fedcohort.dataset.source import TableDataset
from fedcohort.errors import DataError
from fedcohort.rng import new_generator
from fedcohort.types import Ids

PIXEL_MEAN, PIXEL_SD = 0.1307, 0.3081
PIXEL_SCALE = PixelScale((PIXEL_MEAN, PIXEL_MEAN), (PIXEL_SD, PIXEL_SD))
MNIST_TABLE_SPEC = ImageTableSpec(
    "cmnist", ("image",), ("label",), tuple("0123456789"), ImageFormat((1, 28, 28)), PIXEL_SCALE
)

GroupCounts = Int64[np.ndarray, "clients 2 2"]


@dataclass(frozen=True)
class Cmnist(TableDataset):
    """Coloured MNIST, red or green digits in two classes (0-4, 5-9), with generated clients.

    Attributes:
        clients: number of natural clients.
        ci: share of the clients with class imbalance, in [0, 1].
        ai: share of the clients with attribute imbalance; all other clients have spurious correlation.
        share: share of a client's samples that have its dominant class, its dominant colour, or the colour paired
            with their class.
    """

    name, column_names = "cmnist", (MNIST_TABLE_SPEC.image_columns, MNIST_TABLE_SPEC.label_columns)

    clients: int
    ci: float
    ai: float
    share: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_clients_option(self.clients, 24)
        ranges.number("ci", self.ci, "[0, 1]")
        ranges.number("ai", self.ai, "[0, 1]")
        ranges.number("share", self.share, "[0.5, 1]")
        if self.ci + self.ai > 1:
            raise ranges.range_error("ai", f"at most 1 - ci = {1 - self.ci:.6g}", self.ai)

    def load(self, seed: int) -> Raw:
        """Return coloured images as float32 [N, 2, 28, 28] with 2 classes, and the colour (0 or 1) as attribute.

        Training samples have natural clients; the test part belongs to no client.

        Args:
            seed: seed from which images, clients and colours are drawn.

        Raises:
            DataError: a table is missing or invalid, or a class has too few images for the number of clients.
        """
        train_frame, test_frame = self.read_frames()
        y, test_y = ((MNIST_TABLE_SPEC.read_labels(frame) >= 5).astype(np.int64) for frame in (train_frame, test_frame))
        rng = new_generator(seed, "cmnist")
        group_counts = self.count_samples_by_group(np.bincount(y, minlength=2), rng)
        train_rows, owner_of_row, colours = draw_images_by_group(y, group_counts, rng)
        test_group_counts = np.full((1, 2, 2), np.bincount(test_y, minlength=2).min() // 2)
        if not test_group_counts.all() or not group_counts.sum((1, 2)).all():
            raise DataError(f"dataset=cmnist: too few images of a class for clients={self.clients}: set fewer clients")
        test_rows, _, test_colours = draw_images_by_group(test_y, test_group_counts, rng)
        return Raw(
            self.name,
            colour_images(MNIST_TABLE_SPEC.read_images([train_frame], train_rows), colours),
            y[train_rows],
            colour_images(MNIST_TABLE_SPEC.read_images([test_frame], test_rows), test_colours),
            test_y[test_rows],
            n_classes=2,
            train_owner=owner_of_row,
            inputs=f"red and green channel; {len(y) - len(train_rows)} training and "
            f"{len(test_y) - len(test_rows)} test images left out for even groups",
            train_attribute=colours,
            test_attribute=test_colours,
            revision=train_frame.revision,
            converted_scale=PIXEL_SCALE,
        )

    def count_samples_by_group(self, class_sizes: Int64[np.ndarray, "2"], rng: np.random.Generator) -> GroupCounts:
        """Return the number of samples by client, class and colour.

        Args:
            class_sizes: number of images of class 0 (digits 0-4) and of class 1 (5-9).
            rng: generator that draws the order of the clients.
        """
        P = self.compute_group_shares()[rng.permutation(self.clients)]
        client_size = int((class_sizes / P.sum((0, 2))).min())
        return np.asarray(np.floor(client_size * P + 1e-9).astype(np.int64))

    def compute_group_shares(self) -> Float64[np.ndarray, "clients 2 2"]:
        """Return each client's share of samples in each group of class and colour; a client's shares sum to 1.

        Clients with class imbalance come first, then those with attribute imbalance, then spurious correlation.
        """
        s, K = self.share, self.clients
        n_class_skewed_clients = round(self.ci * K)
        n_attribute_skewed_clients = min(round(self.ai * K), K - n_class_skewed_clients)
        imbalanced_group_shares = np.array([[s, s], [1 - s, 1 - s]]) / 2
        class_imbalance_shares = [imbalanced_group_shares[:: 1 - 2 * (k % 2)] for k in range(n_class_skewed_clients)]
        attribute_imbalance_shares = [
            imbalanced_group_shares.T[:, :: 1 - 2 * (k % 2)] for k in range(n_attribute_skewed_clients)
        ]
        spurious_correlation_shares = [np.array([[s, 1 - s], [1 - s, s]]) / 2] * (
            K - n_class_skewed_clients - n_attribute_skewed_clients
        )
        return np.stack([*class_imbalance_shares, *attribute_imbalance_shares, *spurious_correlation_shares])


def draw_images_by_group(y: Ids, group_counts: GroupCounts, rng: np.random.Generator) -> tuple[Ids, Ids, Ids]:
    """Draw images without replacement for each client, class and colour.

    Args:
        y: class of each image, 0 or 1, int64 [images].
        group_counts: number of images to draw by client, class and colour.
        rng: generator that draws the images.

    Returns:
        Sorted positions of the drawn images, their clients and their colours, each int64 [rows].
    """
    draws_by_class = []
    for c in (0, 1):
        n_images_of_group = group_counts[:, c].ravel()
        drawn_rows = rng.permutation(np.flatnonzero(y == c))[: n_images_of_group.sum()]
        clients_and_colours = np.indices(group_counts[:, c].shape).reshape(2, -1)
        draws_by_class.append(np.stack([drawn_rows, *np.repeat(clients_and_colours, n_images_of_group, axis=1)]))
    drawn_rows, owner_of_row, colour_of_row = np.concatenate(draws_by_class, axis=1)
    row_order = np.argsort(drawn_rows)
    return drawn_rows[row_order], owner_of_row[row_order], colour_of_row[row_order]


def colour_images(images: np.ndarray, colours: Ids) -> Float32[np.ndarray, "n 2 28 28"]:
    """Return normalised images with the grey values in the channel of their colour; the other channel is black.

    Args:
        images: grey images, uint8 [n, 1, 28, 28].
        colours: channel of each image, 0 (red) or 1 (green), int64 [n].
    """
    x = np.zeros((len(images), 2, 28, 28), dtype=np.uint8)
    x[np.arange(len(images)), colours] = images[:, 0]
    return PIXEL_SCALE.convert(x)
