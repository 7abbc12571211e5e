"""Risks in whole numbers out of a hundred, which people believe and remember better than decimals."""

import math

__all__ = ["participant", "times_right"]

DENOMINATORS = (100, 1_000, 10_000)


def times_right(risk: float, prior: float = 0.5) -> tuple[int, int]:
    """How often an attacker is right at most, as (times, out of), rounded up.

    A hundred, unless rounding up would add more than a fifth of what the release adds, or would say "always".

    Parameters
    ----------
    risk, prior : float
        Probabilities; what the attacker reaches, and where he starts.

    Examples
    --------
    >>> times_right(0.7311)
    (74, 100)
    >>> times_right(0.52498)
    (525, 1000)
    """
    for out_of in DENOMINATORS:
        times = math.ceil(round(risk * out_of, 9))
        if times < out_of and times / out_of - risk <= (risk - prior) / 5:
            return times, out_of
    return min(math.ceil(risk * DENOMINATORS[-1]), DENOMINATORS[-1] - 1), DENOMINATORS[-1]


def participant(worst_case: float) -> str:
    """What one release means to a person who thinks about taking part."""
    times, out_of = times_right(worst_case)
    coin = out_of // 2
    at_most = "at most" if times / out_of >= worst_case else "more than"
    return (
        "Imagine someone who already knows everybody else's answers and has to say whether you took part.\n"
        f"Without this number they can only toss a coin: right {coin:,} times out of {out_of:,}.\n"
        f"With this number they are right {at_most} {times:,} times out of {out_of:,}, however they go about it.\n"
        "This counts one release; every further one adds to it. It does not cover theft of the data itself, or\n"
        "conclusions about people like you that hold whether or not you take part."
    )
