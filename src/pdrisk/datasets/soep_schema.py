"""The questionnaire of the synthetic survey as a pandera schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdrisk.datasets.soep import EDUCATION, EMPLOYMENT, MISSING_CODES, SEXES, STATES

if TYPE_CHECKING:
    from pandera.pandas import Column, DataFrameSchema


def soep_like_schema() -> DataFrameSchema:
    """Pandera schema of `soep_like`: ranges, groups and missing codes, declared without the data.

    Returns
    -------
    pandera.pandas.DataFrameSchema
        It validates the frame with codes and the one with NaN; ``df.dprisk.declare`` and ``pdrisk.sql`` take it. The
        ends of hours, distance and income are those of Table II (Allmann et al. 2024).

    Examples
    --------
    >>> import pdrisk
    >>> survey = pdrisk.datasets.soep_like().pipe(pdrisk.datasets.soep_like_schema().validate)
    >>> survey.dprisk.declared.loc[["hours", "distance"], ["lo", "hi", "missing"]]
               lo     hi           missing
    column
    hours     0.0   18.0  [-1, -2, -5, -8]
    distance  1.0  675.0  [-1, -2, -5, -8]
    """
    import pandera.pandas as pa

    def answer(low: float, high: float) -> Column:
        # Valid are the answers and the codes; what is asked about are the answers.
        return pa.Column(
            float,
            pa.Check.in_range(min(MISSING_CODES), high),
            nullable=True,
            coerce=True,
            metadata={"dprisk": {"bounds": (low, high), "missing": MISSING_CODES}},
        )

    return pa.DataFrameSchema(
        {
            "person_id": pa.Column(int, pa.Check.ge(1), unique=True),
            "household_id": pa.Column(int, pa.Check.ge(1)),
            "sex": pa.Column(str, pa.Check.isin(SEXES)),
            "age": pa.Column(int, pa.Check.in_range(17, 120)),
            "state": pa.Column(str, pa.Check.isin(STATES)),
            "education": pa.Column(str, pa.Check.isin(EDUCATION)),
            "employment": pa.Column(str, pa.Check.isin(EMPLOYMENT)),
            "hours": answer(0, 18),
            "distance": answer(1, 675),
            "income": answer(0, 2_700_000),
        },
        name="soep_like",
    )
