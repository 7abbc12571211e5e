"""English texts of the statement about a publication. A translation has the same fields, and the same names in braces.

A field that ends in ``_over`` is said where even 10,000 is too small a number for the risk to be less than "always".
"""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "title": "{name}: how its numbers were made, and what they can reveal",
    "purpose": "purpose",
    "corrections": "corrections",
    "supersedes": "stands in the place of {name}",
    "superseded": "{name} stands in its place since {date}",
    "withdrawn": "withdrawn on {date}: {reason}. What was told is told, so no eps came back",
    "asked": "asked",
    "asked_once": "of {dataset} on {first} (UTC)",
    "asked_between": "of {dataset} from {first} to {last} (UTC)",
    # Who is protected.
    "unit": "unit",
    "unit_one": "one record, assuming one record per person; a person with k records loses k times the eps",
    "unit_person": "everything that one {unit} has in the data",
    "unit_row": "one {unit}; a person with k rows loses k times the eps",
    "neighbours": "neighbours",
    "neighbours_one": "two sets of data that differ in one record, there or not",
    "neighbours_person": "two sets of data that differ in all rows of one {unit}, there or not",
    "word_one": "person",
    "word_row": "record",
    # One answer.
    "answer": "answer {number}",
    "label_records": "  records",
    "label_groups": "  groups",
    "label_people": "  people",
    "label_values": "  values",
    "label_noise": "  noise",
    "label_eps": "  eps",
    "all": "all",
    "some": "selected by {where}",
    "mask": "a mask or function",
    "trusted": "that it decides row by row is the publisher's word",
    "hidden": "that {names} was not computed from the data is the publisher's word, so its value is not shown",
    "derived": "{name} is {text}",
    "groups_listed": "{number} by {columns}, {by_whom}",
    "by_publisher": "declared by the publisher, whose list leaves out records of all others",
    "by_categories": "the categories of the column, a code book by the publisher's word",
    "margins": (
        "cells and margins were measured apart and adjusted to each other by least squares, so that they add up; "
        "measured were {measured}"
    ),
    "table": "the table by {columns} with {share} % of eps",
    "total": "the total with {share} % of eps",
    "groups_private": "those of {columns} that occur in the data and that chance shows{sizes}",
    "sizes": ": of {surely} in any case, of {half} at least half of the time, of fewer than {least} never",
    "groups_of_data": "those of {columns} that occur in the data; that they are public is the publisher's word",
    "without_missing": "records whose {columns} is missing are in no group",
    "codes": "{codes} in {column} count as missing",
    "bounds": "{column} from {low} to {high} by the publisher's word, and values beyond count as the bound",
    "bins": "{number} bins from {low} to {high} by the publisher's word; values beyond {beyond}",
    "bins_clamp": "count in the first and the last",
    "bins_leave_out": "are not counted",
    "weights": "weights {column}, trimmed at {most} and made without these records by the publisher's word",
    "n_at_least": "at least {n} records by the publisher's word",
    "rounded": "rounded to multiples of {base} after the noise",
    "eps_of_groups": "{eps} and delta {delta} to choose the groups that are shown",
    "times": "all of it {times} times, as groups may share people",
    "eps_in_all": "{eps} in all",
    "per_person": "the rows of each {unit} become one number first, their {way}",
    "row": "one row of each {unit} counts{where}, chosen by its own content and a secret",
    "rows": "at most {rows} rows of each {unit} count{where}, chosen by their own content and a secret",
    "each_group": " in each group",
    "all_groups": " in all groups together",
    "group": "each {unit} counts in one group",
    "waves": "of those with a value in both waves",
    "weight_of_later": ", and a weight in the later one",
    "groups": "each {unit} counts in at most {groups} groups",
    "withheld": "{eps} to see, with noise, whether there are {size}: answers about fewer are withheld",
    # All of them.
    "left_out": "left out",
    "left_out_is": (
        "records in which what is asked for is missing, and what is said of each answer; how many these are is not "
        "published"
    ),
    "eps": "eps",
    "eps_is": "{eps}, the sum over these answers",
    "eps_of_all": "{eps} over all answers about these people so far",
    "delta": "delta",
    "delta_is": "{delta}, the sum over these answers: how probably lists of groups fail to hide one {unit}, at most",
    "risk": "risk",
    "imagine": (
        "In the hardest case we can think of, someone knows everybody else's records and must say whether one {unit} "
        "is in the data. Without these answers they can only toss a coin: right {coin} times out of {out_of}."
    ),
    "these": (
        "With these answers alone, at most {times} times out of {out_of}, if no other answer decided what was asked "
        "here."
    ),
    "these_over": "With these answers alone, more than {times} times out of {out_of}.",
    "so_far": "With all answers about these people so far, at most {times} times out of {out_of}.",
    "so_far_over": "With all answers about these people so far, more than {times} times out of {out_of}.",
    "limit": (
        "With all answers about these people, later ones included and however they are combined, at most {times} times "
        "out of {out_of}: the ledger refuses what would let them be right more often."
    ),
    "limit_over": (
        "With all answers about these people, later ones included, they may be right more than {times} times out of "
        "{out_of}."
    ),
    "worst_case": "Lucky answers may have made them surer of it, but never surer than {times} of {out_of}.",
    "worst_case_over": "Lucky answers may have made them surer of it than {times} of {out_of}.",
    "with_delta": "That counts delta {delta}.",
    "late": (
        "The limit was set or raised after {number} of the answers about these people: it holds only if they did not "
        "decide it."
    ),
    "caution": "caution",
    "older": (
        "{number} of the answers about these people protected one record: of a {unit} with several, all of this may be "
        "too low"
    ),
    "from_data": "{number} of the answers about these people took bounds or groups from the data, which no eps covers",
    "keys_of_data": "which {columns} occur in the data",
    "uncovered": "not covered",
    "uncovered_is": (
        "theft of the data themselves; what is true of people like these, whether or not one of them is in the data"
    ),
    # What only the registry asks for.
    "composition": "The eps of the answers add up. That of an answer holds for all of its groups together.",
    "composition_limit": (
        "The ledger also adds up what each answer allows by Gaussian differential privacy, whatever later questions "
        "have to do with earlier answers, and refuses what would go over its limit of success."
    ),
    "pdrisk": "Answered with pdrisk, whose noise is discrete and drawn exactly.",
    "description": "Noisy answers about {dataset}: {asked}",
}
