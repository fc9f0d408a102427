"""One module per revision, named `r<number>_<what it adds>`."""
