"""A user's own table (`dataset=folder`): find its files, describe its columns, encode them and propose options."""
