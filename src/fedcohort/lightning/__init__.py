"""The round as Lightning's loop, module, data and callbacks; the only package that imports Lightning."""
