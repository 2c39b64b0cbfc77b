"""What a client can be asked for, one file per word."""
