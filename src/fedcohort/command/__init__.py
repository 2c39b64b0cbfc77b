"""What a user types beside `train.py`: one verb, one module."""
