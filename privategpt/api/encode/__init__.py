"""One file per dialect: the events of an answer as the chunks and replies of that dialect."""
