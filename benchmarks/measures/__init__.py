"""One module for each thing that is measured; each returns rows of the table."""
