"""Files, documents, chunks and the index's fingerprint in SQLite or PostgreSQL.

`opening.open_state_store` is the way in. `tables.py` is the schema as it is now, `migrations/` how
it came to be; a later table gets a module of its own on `tables.schema`, named in
`migrations/env.py`, and a new revision. Its store shares the `Database` of `opening.open_database`.
"""
