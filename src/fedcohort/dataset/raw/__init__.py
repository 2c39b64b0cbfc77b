"""Convert raw data, such as folders of images or JSON files, to tables; each module has a function `plan_tables`."""
