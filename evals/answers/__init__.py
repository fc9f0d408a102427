"""End to end: questions of SQuAD 2.0 through a running server, judged by their citations."""
