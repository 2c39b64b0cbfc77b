"""What this room rests on of MLflow that it doesn't document: each part in a function of its own.

All of it was read in MLflow 3.17.2.
"""

from typing import TYPE_CHECKING

from fedcohort.errors import ForeignChange

if TYPE_CHECKING:
    from mlflow import MlflowClient

MLFLOW = "3.17.2"


def let_go(client: "MlflowClient") -> None:
    """Close a client's connections to its database, which is then a file like any other.

    Rests on `MlflowClient._tracking_client.store.engine`, SQLAlchemy's engine of a store in a database (MLflow 3.17.2).
    """
    try:
        engine = client._tracking_client.store.engine
    except AttributeError as error:
        part = "MlflowClient._tracking_client.store.engine"
        raise ForeignChange("mlflow", part, "closes a new database", MLFLOW) from error
    engine.dispose()


def is_locked(error: BaseException) -> bool:
    """Whether the database was locked by another process.

    MLflow wraps SQLite's error: its text alone is left, and "database is locked" is SQLite's (MLflow 3.17.2).
    """
    return "database is locked" in str(error)
