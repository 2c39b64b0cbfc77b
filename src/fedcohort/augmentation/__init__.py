"""How the images that clients train on are changed, pass by pass."""
