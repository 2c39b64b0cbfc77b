"""Raw forms of data sets, folders of images and of JSON, made into tables: one form, one module with a `plan`."""
