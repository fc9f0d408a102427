"""The nouns of the product, the ports it needs and the errors it raises; standard library only."""
