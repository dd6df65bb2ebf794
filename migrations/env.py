"""Alembic's door: it only writes SQL; `dormouse migrate` sends that through asyncpg, under a lock.

No engine and no second driver: the same text goes to a direct server and to one behind a transaction pooler.
"""

from alembic import context

if not context.is_offline_mode():
    raise SystemExit("Alembic only writes SQL here: add --sql to see it, or run `dormouse migrate` to apply it.")

context.configure(
    dialect_name="postgresql",
    dialect_opts={"paramstyle": "named"},
    literal_binds=True,
    transactional_ddl=False,
)
context.run_migrations()
