"""English texts of all that pdrisk tells people. A translation has the same fields, and the same names in braces.

A field that ends in ``_over`` is said where even 10,000 is too small a number for the risk to be less than "always";
one in ``_replaced`` where the number of records is public; one in ``_of_rows`` where each record is protected alone.
"""

from pdrisk._answer.words.english_ledger import OF_LEDGERS
from pdrisk._answer.words.english_surveys import OF_SURVEYS

TEXTS = {
    **OF_LEDGERS,
    **OF_SURVEYS,
    # The participant.
    "imagine": (
        "Imagine the hardest case we can think of: someone knows everybody else's answers and must say whether you "
        "took part."
    ),
    "imagine_replaced": (
        "Imagine the hardest case we can think of: someone knows everybody else's answers, knows that yours is one of "
        "two, and must say which."
    ),
    # From a base rate instead of a coin.
    "imagine_prior": (
        "Imagine the hardest case we can think of: someone knows everybody else's answers.\n"
        "To begin with, they see a chance of {before} that you took part."
    ),
    "imagine_prior_replaced": (
        "Imagine the hardest case we can think of: someone knows everybody else's answers, and that yours is one of "
        "two.\nTo begin with, they see a chance of {before} of the first."
    ),
    "with_prior_one": "After this number it is {after}, however they go about it.",
    "with_prior_several": "After all these numbers it is {after}, however they go about it.",
    "so_far_prior": "This counts one release. After all releases so far together it is {after}.",
    "chance_in": "1 in {number}",
    "chance_of": "{times} of {out_of}",
    "chance_at_most": "at most {chance}",
    "chance_over": "more than {chance}",
    "without_one": "Without this number they can only toss a coin: right {coin} times out of {out_of}.",
    "without_several": "Without these numbers they can only toss a coin: right {coin} times out of {out_of}.",
    "with_one": (
        "With this number they are right at most {times} times out of {out_of}, however they go about it. "
        "That is at most {more} more."
    ),
    "with_one_over": (
        "With this number they may be right more than {times} times out of {out_of}: it hardly hides you."
    ),
    "with_several": (
        "With all these numbers they are right at most {times} times out of {out_of}, however they go about it. "
        "That is at most {more} more."
    ),
    "with_several_over": (
        "With all these numbers they may be right more than {times} times out of {out_of}: they hardly hide you."
    ),
    "unit_of_person": "It holds for everything that one {unit} has in the data.",
    "unit_of_record": "It holds if one record in the data is yours. With several, they may be right more often.",
    "withheld": (
        "The number itself is withheld because it is about too few people. That reveals something, too, and is counted."
    ),
    "one_release": "This counts one release; every further one adds to it.",
    "so_far": "This counts one release. All releases so far together: at most {times} of {out_of}.",
    "so_far_over": "This counts one release. All releases so far together: more than {times} of {out_of}.",
    "not_covered": (
        "It does not cover theft of the data itself, or conclusions about people like you that hold whether or not "
        "you take part."
    ),
    "not_covered_replaced": (
        "That you took part is not hidden. It does not cover theft of the data itself, or conclusions about people "
        "like you that hold whatever your answer is."
    ),
    # The analyst.
    "analyst_title": "{name}, for the analyst",
    "curator_title": "{name}, for the curator",
    "publication_title": "{name}, as published",
    "caution": "caution",
    "caution_from_data": (
        "the bounds are the data's own: this is not differential privacy, and nothing of it may be published"
    ),
    "answer": "answer",
    "answer_is": "{value}, with noise; 95 % interval {low} to {high}",
    "answer_by_rank": "{value}, chosen by its rank, with noise",
    "interval_by_rank": "{ranks}; sampling error comes on top",
    "ranks_within": (
        "at most {ranks} records, rounded to steps of {step}, lie between it and the rank asked for, 95 % sure; "
        "it says nothing of fewer than some {few} records"
    ),
    "ranks_unknown": "how far it is from the rank asked for is not known at so small an eps",
    "noise_by_rank": "with noise: {ranks}; for eps {eps}",
    "answer_withheld": "withheld: too few people",
    "interval": "interval",
    "interval_is": "where the answer without noise lies, 95 % sure; sampling error comes on top",
    "interval_is_clamped": (
        "where the answer of the clamped values without noise lies, 95 % sure; how much clamping changes is not known; "
        "sampling error comes on top"
    ),
    "clip": "clipped",
    "clip_is": (
        "a value below {low} counts as {low}, one above {high} as {high}; half of eps found both. Answer and interval "
        "are those of the clipped values; how much clipping cuts off is not known"
    ),
    "noise_is": "with noise: ±{half}, 95 % sure, for eps {eps}",
    "noise_is_widest": "with noise: ±{half} in the widest group, 95 % sure, for eps {eps}",
    "noise_of_nothing": "no value is shown, for eps {eps}",
    "margins": "margins",
    "margins_are": ("cells and margins add up: all are least-squares estimates from what was measured, {measured}"),
    "table_measured": "{table} with {share} of eps",
    "table_by": "the table by {columns}",
    "table_of_all": "the total",
    "margins_whole": (
        "; counts are shown as whole numbers of at least 0 near the estimates, of which the intervals are"
    ),
    "margins_of_listed": "; margins, too, are about the records whose keys are listed in all columns",
    "adjusted_to": (
        "adjusted by least squares to what was published before, {tables}, so that all add up; assumes that everybody "
        "has a listed key in each"
    ),
    "adjusted_state": " and that all are about the same data: {state}",
    "adjusted_by_word": " and, by the word of whoever asked, that all are about the same data",
    "shrunk": "shrunk",
    "shrunk_all": "drawn towards the mean of all groups: better on average, worse for those that differ most",
    "shrunk_in": "drawn towards the mean of those with the same {column}: better on average, worse for outliers",
    "shares": "shares",
    "share_of_groups": "of all in the same group by {columns}",
    "share_of_all": "of all together",
    "eps": "eps",
    "eps_is": "{eps}",
    "eps_groups": "{eps}; assuming one record per person, everybody is in at most one group: all groups cost it once",
    "eps_groups_person": "{eps}; each {unit} counts in one group at most, so all groups cost it once",
    "eps_groups_several": "{eps}; each {unit} counts in {groups} groups at most, which cost it together",
    "eps_groups_overall": (
        "{eps}; each {unit} counts with at most {rows} rows in all groups together, which cost it together"
    ),
    "eps_groups_row": "{eps}; each row is in one group at most; a person with rows in k groups loses k times as much",
    "eps_shared": "; {names} come from one release and cost its eps once, together",
    "eps_of_groups": "; {groups} of it to choose the groups that are shown",
    "delta": "delta",
    "delta_is": (
        "{delta}: the largest probability that the list of groups fails to hide one person; the risk below counts it"
    ),
    "delta_is_of_rows": (
        "{delta}: the largest probability that the list of groups fails to hide one record; the risk below counts it"
    ),
    "delta_told": (
        "Chance also decides which groups are listed. At most one such list in {one_in} shows that you took part; that "
        "is counted."
    ),
    "eps_counted": "; {extra} of it to see, with noise, whether there are {size} people",
    "left": "left",
    "left_is": "eps {eps} of the budget",
    "left_unlimited": "no limit is set",
    "left_delta": "{left}; delta {delta} of its budget",
    "left_unknown": "not known here; so_far=ledger would tell",
    "left_unknown_replaced": "no ledger pays for such answers",
    "label_risk": "risk",
    "risk": (
        "In the hardest case we can think of, someone knows everybody else's records and has to say whether one person "
        "is in the data. Without this release they can only toss a coin: right {coin} times out of {out_of}. With it, "
        "at most {times} times out of {out_of}."
    ),
    "risk_over": (
        "In the hardest case we can think of, someone knows everybody else's records and has to say whether one person "
        "is in the data. Without this release they can only toss a coin: right {coin} times out of {out_of}. With it, "
        "more than {times} times out of {out_of}."
    ),
    "risk_of_rows": (
        "In the hardest case we can think of, someone knows all other records and has to say whether one record is "
        "in the data. Without this release they can only toss a coin: right {coin} times out of {out_of}. With it, "
        "at most {times} times out of {out_of}."
    ),
    "risk_over_of_rows": (
        "In the hardest case we can think of, someone knows all other records and has to say whether one record is "
        "in the data. Without this release they can only toss a coin: right {coin} times out of {out_of}. With it, "
        "more than {times} times out of {out_of}."
    ),
    "risk_replaced": (
        "In the hardest case we can think of, someone knows everybody else's records, and two values of which one is a "
        "given person's. Without this release they can only toss a coin: right {coin} times out of {out_of}. With it, "
        "at most {times} times out of {out_of}."
    ),
    "risk_over_replaced": (
        "In the hardest case we can think of, someone knows everybody else's records, and two values of which one is a "
        "given person's. Without this release they can only toss a coin: right {coin} times out of {out_of}. With it, "
        "more than {times} times out of {out_of}."
    ),
    "risk_prior": (
        "In the hardest case we can think of, someone knows everybody else's records. To begin with, they see a chance "
        "of {before} that one person is in the data; after this release it is {after}."
    ),
    "risk_prior_of_rows": (
        "In the hardest case we can think of, someone knows all other records. To begin with, they see a chance of "
        "{before} that one record is in the data; after this release it is {after}."
    ),
    "risk_prior_replaced": (
        "In the hardest case we can think of, someone knows everybody else's records, and two values of which one is a "
        "given person's. To begin with, they see a chance of {before} of the first; after this release it is {after}."
    ),
    "together_prior": "after all releases together, eps {eps}, it is {after}",
    "label_together": "so far",
    "together_unknown": "this counts one release; losses add up, so every further one adds to it",
    "together": "all releases together: eps {eps}, right at most {times} times out of {out_of}",
    "together_over": "all releases together: eps {eps}, right more than {times} times out of {out_of}",
    # The curator.
    "curator_only": "curator only: these come from the data, do not publish",
    "label_not_held": "not held",
    "not_held": "the curator's numbers of a subquery are not in this answer: ask for it alone with curator=True",
    "group_is": "{name}, most exposed group: {group}",
    "global_sensitivity": "global sensitivity",
    "global_sensitivity_is": (
        "{value}: the most that one record can move the answer without noise, in any data within the bounds"
    ),
    "global_sensitivity_is_person": (
        "{value}: the most that one {unit} can move the answer{where} without noise, in any data within the bounds"
    ),
    "local_sensitivity": "local sensitivity",
    "local_sensitivity_unknown": (
        "not computed for statistics of two columns, nor in SQL for all statistics together where a person has several "
        "rows"
    ),
    "local_sensitivity_is": "{value}: the most in these data, at most {share} of that",
    "records": "records used",
    "clamped": "moved to a bound",
    "clamped_is": "{share} of the records: their values lie beyond the bounds",
    "clamped_none": "none",
    "worst_case": "worst case",
    "worst_case_means": "any person, any data within the bounds",
    "worst_case_means_of_rows": "any record, any data within the bounds",
    "two_worlds": "two worlds",
    "two_worlds_means": "is one person in these data? The most exposed one",
    "two_worlds_means_of_rows": "is one record in these data? The most exposed one",
    "two_worlds_means_replaced": "which of two values is one person's? The most exposed one",
    "many_worlds": "many worlds",
    "many_worlds_means": "the same, for an attacker who starts from 1/n",
    "identifiability": "identifiability",
    "identifiability_means": "which of these n people is missing?",
    "identifiability_means_of_rows": "which of these n records is missing?",
    "risk_row": "{prior} without this answer, at most {risk} with it: {meaning}",
    "risk_none": "none: no record was used",
    "risk_undefined": "not defined: the number of records is public, and none is missing",
    "risk_certain": "certain without this answer: one record was used",
    "privacy_loss": "privacy loss",
    "privacy_loss_is": "{loss} of eps {eps}, for the most exposed person",
    "privacy_loss_is_of_rows": "{loss} of eps {eps}, for the most exposed record",
    "privacy_loss_even": "{loss}, all of eps, for every person alike",
    "privacy_loss_even_of_rows": "{loss}, all of eps, for every record alike",
    "label_most_exposed": "most exposed",
    "most_exposed_even": (
        "nobody more than others: by this mechanism each person, in the data or not, loses all of eps, whatever the "
        "value. An attacker is right at most {times} times out of {out_of} instead of {coin}."
    ),
    "most_exposed_even_of_rows": (
        "no record more than others: by this mechanism each record, in the data or not, loses all of eps, whatever "
        "its value. An attacker is right at most {times} times out of {out_of} instead of {coin}."
    ),
    "most_exposed_even_over": (
        "nobody more than others: by this mechanism each person, in the data or not, loses all of eps, whatever the "
        "value. An attacker is right more than {times} times out of {out_of} instead of {coin}."
    ),
    "most_exposed_even_over_of_rows": (
        "no record more than others: by this mechanism each record, in the data or not, loses all of eps, whatever "
        "its value. An attacker is right more than {times} times out of {out_of} instead of {coin}."
    ),
    "most_exposed_by_rank": (
        "someone whose record, in the data or not, changes the odds of possible answers most: an attacker is right at "
        "most {times} times out of {out_of} instead of {coin}. df.dprisk.individual_risk shows the risk of everybody."
    ),
    "most_exposed_by_rank_over": (
        "someone whose record, in the data or not, changes the odds of possible answers most: an attacker is right "
        "more than {times} times out of {out_of} instead of {coin}. df.dprisk.individual_risk shows the risk of "
        "everybody."
    ),
    "most_exposed": (
        "someone whose record, in the data or not, moves the answer by the local sensitivity: an attacker is right at "
        "most {times} times out of {out_of} instead of {coin}. df.dprisk.individual_risk shows the risk of everybody."
    ),
    "most_exposed_over": (
        "someone whose record, in the data or not, moves the answer by the local sensitivity: an attacker is right "
        "more than {times} times out of {out_of} instead of {coin}. df.dprisk.individual_risk shows the risk of "
        "everybody."
    ),
    "most_exposed_replaced": (
        "someone whose value, replaced with another, moves the answer by the local sensitivity: an attacker who has to "
        "tell the two apart is right at most {times} times out of {out_of} instead of {coin}."
    ),
    "most_exposed_over_replaced": (
        "someone whose value, replaced with another, moves the answer by the local sensitivity: an attacker who has to "
        "tell the two apart is right more than {times} times out of {out_of} instead of {coin}."
    ),
    # The label of a publication.
    "asked_of": "asked of",
    "asked_of_all": "all records",
    "asked_of_some": "records selected by {where}",
    "asked_of_trusted": "records selected by {where}; that it decides row by row is the publisher's word",
    "asked_of_hidden": (
        "records selected by {where}; that {names} was not computed from the data is the publisher's word, and so its "
        "value is not shown"
    ),
    "groups": "groups",
    "groups_declared": "declared by the publisher",
    "groups_from_categories": (
        "the categories of the column; that they are a code book, whoever is in the data, is the publisher's word"
    ),
    "groups_private": "those that occur in the data and that chance shows",
    "sizes_shown": ": of {surely} people in any case, of {half} at least half of the time, of nobody never",
    "sizes_shown_of_rows": ": of {surely} records in any case, of {half} at least half of the time, of none never",
    "sizes_hidden": ", nor of fewer than {least}",
    "groups_from_data": (
        "those that occur in the data, that of missing keys among them; that they are public is the publisher's word"
    ),
    "groups_combined": "; all {number} combinations of the keys of {columns} are shown, whether they occur or not",
    "groups_without_missing": "; records whose {columns} is missing are left out of groups by it",
    "sums": "sums",
    "sums_of_cells": "of the cells shown, without those that are withheld",
    "sums_of_groups": "of the groups shown, without those that chance hides",
    "names_and": " and ",
    "names_or": " or ",
    "bins": "bins",
    "bins_clamp": (
        "declared by the publisher; each holds its left edge, the last one both; values beyond count in the first and "
        "the last"
    ),
    "bins_leave_out": (
        "declared by the publisher; each holds its left edge, the last one both; values beyond are not counted"
    ),
    "unit": "unit",
    "unit_is": (
        "one record, assuming one record per person; for a person with k records all risks are those of k times the eps"
    ),
    "unit_person": "everything that one {unit} has in the data{counted}",
    "unit_row": "one {unit}; for a person with k rows all risks are those of k times the eps",
    "counted_per_person": "; the rows of each become one number first, their {way}",
    "counted_one": "; one row of each counts, chosen by its own content and a secret if there are more",
    "counted_rows": "; at most {rows} rows of each count, chosen by their own content and a secret",
    "in_each_group": " in each group",
    "in_all_groups": " in all groups together",
    "left_out": "left out",
    "left_out_is": "{rule}; how much that leaves out is not known",
    "left_out_share": "{share} of the records, by the limits of rows and groups",
    "limit_row": "one row of each {unit} counts",
    "limit_rows": "at most {rows} rows of each {unit} count",
    "limit_waves": "a {unit} counts if both waves have a value",
    "limit_group": "each {unit} counts in one group",
    "limit_groups": "each {unit} counts in at most {groups} groups",
    "interval_truncated": "; the interval is that of the truncated answer",
    "neighbours": "neighbours",
    "neighbours_is": "two sets of data that differ in one record, added or removed",
    "neighbours_is_person": "two sets of data that differ in all rows of one {unit}, added or removed",
    "neighbours_is_replaced": (
        "two sets of data of the same public size that differ in the value of one record; who is in them is not hidden"
    ),
    "noise_scaled": "{noise}, scale {scale}",
    "line_is": "bounds {bounds}; {noise}{rounded}; global sensitivity of the statistic {sensitivity}; eps {eps}",
    "bounds_are": "{ranges}, declared by the publisher, and values beyond count as the bound",
    "rounded_to": ", then rounded to multiples of {base}",
    "bounds_by_where": "{ranges}, bounds from WHERE, within those that the publisher declared, if any",
    "bounds_range": "{low} to {high}",
    "bounds_of_column": "{column} {range}",
    **{"bounds_none": "none needed", "bounds_of_bins": "those of the bins"},  # noqa: PIE800
    "label_composition": "composition",
    "uncovered": "not covered",
    "uncovered_is": "theft of the data itself; conclusions about people that hold whether or not they take part",
    "uncovered_is_replaced": (
        "that somebody is in the data; theft of the data itself; conclusions about people that hold whatever their own "
        "value is"
    ),
    # Pictures.
    "font_lacks": "□: a letter that this font lacks",
    "icons_title": "Is one person in the data? {out_of} attempts to tell",
    "icons_title_of_rows": "Is one record in the data? {out_of} attempts to tell",
    "icons_each": "Each sign stands for {each} attempts.",
    "icons_enlarged": "one sign, taken apart:",
    "anyway": "right anyway, with a coin: {times}",
    "extra": "right because of this release: at most {times} more",
    "extra_over": "right because of this release: more than {times} more",
    "wrong": "wrong: at least {times}",
    "wrong_over": "wrong: hardly ever",
    "worlds_title": "The noisy answer with and without one person",
    "worlds_title_of_rows": "The noisy answer with and without one record",
    "worlds_without": "without",
    "worlds_with": "with",
    "worlds_axis": "noisy answer, from the answer without the person{unit}",
    "worlds_axis_of_rows": "noisy answer, from the answer without the record{unit}",
    "worlds_density": "density",
    "worlds_distance": "distance {distance} (local sensitivity), noise of scale {scale}",
    "worlds_sketch": "a sketch: Laplace curves whose privacy loss, {loss}, is that of the mechanism's own noise",
    "worlds_scales": "in scales of the noise",
    "worlds_overlap": "overlap: {overlap} of each curve",
    "worlds_same": "the curves are one: in these data no one record moves the answer",
    "worlds_right": "an attacker is right {coin} times out of {out_of} without, at most {times} with this release",
    "worlds_right_over": "an attacker is right {coin} times out of {out_of} without, over {times} with this release",
    "curve_title": "How often an attacker is right, in the worst case",
    "curve_axis": "eps",
    "curve_risk": "times right of {out_of}",
    "curve_coin": "a coin: {coin} of {out_of}",
    "curve_worst": "worst case",
    "curve_half": "half the eps: at most {times}",
    "curve_half_over": "half the eps: over {times}",
    "curve_here": "this release, eps {eps}: at most {times}",
    "curve_here_over": "this release, eps {eps}: over {times}",
    "curve_twice": "twice the eps: at most {times}",
    "curve_twice_over": "twice the eps: over {times}",
}
