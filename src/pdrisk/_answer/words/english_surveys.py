"""English texts about weighted answers and samples: a part of `english.TEXTS`."""

from typing import Final

OF_SURVEYS: Final = {
    "weight_of_later": ", and the later one a weight",
    "weights_are": (
        "; each record counts with its weight {column}, trimmed at {most}; that weights were made without these "
        "records is the publisher's word"
    ),
    "sampling_error_is": "; standard error by the declared design of the sample, without the noise, {se}",
    "sampling_error_costs": "; noisy sums that tell the sampling error, for eps {eps}",
    "ranks_within_weight": (
        "records of a weight of {ranks} together at most, rounded to steps of {step}, lie between it and the rank "
        "asked for, 95 % sure; it says nothing of a weight of fewer than some {few} in all"
    ),
}
