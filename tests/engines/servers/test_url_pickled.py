"""A URL of a server, with its password, leaves no process by a pickle, and is shown by no error."""

import pickle

import pytest

from pdrisk import Dataset, ParameterError
from pdrisk._cli import main
from pdrisk._tables.postgres_table import PostgresTable, server_of


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_no_pickle_holds_the_password(protocol):
    table = PostgresTable(server_of("postgresql://me:s3cret@host/base"), "people")
    with pytest.raises(ParameterError, match="is not pickled") as caught:
        pickle.dumps(table, protocol)
    assert "s3cret" not in str(caught.value)


def test_no_error_of_a_dataset_shows_it():
    with pytest.raises(ParameterError, match=r"name one, as in pdrisk.Dataset\(\(url, 'survey.people'\)\)") as caught:
        Dataset("postgresql://me:s3cret@host/base")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "where", ["postgresql://me:s3cret@host/base", "mysql://me:s3cret@host", "host=a password=s3cret"]
)
def test_assess_does_not_show_it(where, capsys):
    assert main(["assess", where]) == 2
    printed = capsys.readouterr()
    assert "s3cret" not in printed.out + printed.err and "pdrisk.Dataset((url," in printed.err
