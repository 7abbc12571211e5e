"""Questions that `pdrisk.statements` takes, asked of a Dataset."""

import re


def asked_by_methods(d, question, options):
    """The answer to a question that is written as `pdrisk.statements` takes it."""
    if isinstance(question, dict):
        return d.agg(question, **options)
    name, quantile, column = re.fullmatch(r"(\w+)\((?:([\d.]+)\) of )?(\w*)\)?", question).groups()
    own = {} if quantile is None else {"q": float(quantile)}
    return getattr(d, name)(*([column] if column else []), **own, **options)
