"""Convert raw data, such as image folders or JSON files, to tables; each module has a function `plan_table_pieces`."""
