"""HTTP in: bodies become requests to the use cases, and their events become replies."""
