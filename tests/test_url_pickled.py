"""A URL of a server, with its password, leaves no process by a pickle."""

import pickle

import pytest

from pdrisk import ParameterError
from pdrisk._sql.postgres import PostgresTable, server_of


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_no_pickle_holds_the_password(protocol):
    table = PostgresTable(server_of("postgresql://me:s3cret@host/base"), "people")
    with pytest.raises(ParameterError, match="is not pickled") as caught:
        pickle.dumps(table, protocol)
    assert "s3cret" not in str(caught.value)
