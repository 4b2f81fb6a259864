"""Run by alembic: the connection and its transaction come from `core.store.database`."""

from alembic import context

from core.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
