"""CIFAR-100's hundred class names; properties of all image datasets are in tests/laws/test_image_dataset_laws.py."""

from pathlib import Path

from fedcohort.dataset.cifar100 import CLASSES, Cifar100
from image_tables import encode_image, random_images, write_image_table


def test_cifar100_class_names_are_in_alphabetical_order() -> None:
    assert len(set(CLASSES)) == 100
    assert list(CLASSES) == sorted(CLASSES)
    assert (CLASSES[0], CLASSES[19], CLASSES[49], CLASSES[99]) == ("apple", "cattle", "mountain", "worm")


def test_labels_are_the_fine_labels_and_not_the_coarse_ones(tmp_path: Path) -> None:
    images = [encode_image(image) for image in random_images(4, (3, 32, 32))]
    for part in ("train", "test"):
        write_image_table(tmp_path, part, img=images, fine_label=[99, 0, 19, 49], coarse_label=[1, 1, 1, 1])
    raw = Cifar100(str(tmp_path), "hub", None, "auto").load(0)
    assert raw.train_y.tolist() == [99, 0, 19, 49]
    assert raw.n_classes == 100
