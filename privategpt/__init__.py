"""privategpt: a self-hosted, OpenAI-compatible RAG API whose citations can be checked."""
