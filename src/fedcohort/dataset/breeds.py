"""The dogs of Spawrious, and the places that they stand at: names of its folders, numbered in this order."""

BREEDS = ("bulldog", "corgi", "dachshund", "labrador")
PLACES = ("beach", "desert", "dirt", "jungle", "mountain", "snow")
