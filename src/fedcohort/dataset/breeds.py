"""Name the breeds and places of Spawrious, which are its folders, in the order of their numbers."""

BREEDS = ("bulldog", "corgi", "dachshund", "labrador")
PLACES = ("beach", "desert", "dirt", "jungle", "mountain", "snow")
