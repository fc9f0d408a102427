"""Measured quality: retrieval, support, answers. Not part of the unit gate."""
