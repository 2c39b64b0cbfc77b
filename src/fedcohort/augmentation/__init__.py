"""Augmentation: random changes of the images that clients train on, drawn again in every pass over them."""
