"""Dataset adapters: arrays in, arrays out."""
