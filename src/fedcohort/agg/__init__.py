"""What the server does with the updates that arrive, one file per paper."""
