"""Breeds and places of the dataset Spawrious, which are its folders, in the order of their numbers."""

BREEDS = ("bulldog", "corgi", "dachshund", "labrador")
PLACES = ("beach", "desert", "dirt", "jungle", "mountain", "snow")
