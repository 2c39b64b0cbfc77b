"""The round's stages as Lightning's loop, module, data and callbacks. Alone in knowing Lightning."""
