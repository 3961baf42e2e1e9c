"""Files that are generated from the declarations: the example of a configuration, and the tables in the pages."""
