"""What a library of thousands of files and a million chunks costs on one machine."""
