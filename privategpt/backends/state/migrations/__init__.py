"""How the schema came to be: Alembic's revisions, applied at start by `migrating.upgrade`."""
