"""English texts about several answers together, and about trade-off curves: a part of `english.TEXTS`."""

from typing import Final

from pdrisk._ledger.rules.success_limits import LATE

OF_LEDGERS: Final = {
    "computed_from_one": "{value}: computed from the answer below, and tells nothing that it does not tell.",
    "computed_from_several": (
        "{value}: computed from the {number} answers below, eps {eps} in all, and tells nothing that they do not tell "
        "together."
    ),
    "ledger_without": "Without our numbers they can only toss a coin: right {coin} times out of {out_of}.",
    "ledger_with": (
        "With all our numbers, those to come included, they are right at most {times} times out of {out_of}, however "
        "they combine them. That is at most {more} more."
    ),
    "ledger_with_over": (
        "With all our numbers, those to come included, they may be right more than {times} times out of {out_of}: they "
        "hardly hide you."
    ),
    "ledger_so_far": (
        "With all our numbers so far they are right at most {times} times out of {out_of}, however they combine them. "
        "That is at most {more} more, and every further number adds to it: no limit is set."
    ),
    "ledger_so_far_over": (
        "With all our numbers so far they may be right more than {times} times out of {out_of}: they hardly hide you."
    ),
    "lucky": (
        "Lucky numbers may convince more, rightly or wrongly: in at most {times} of {out_of} cases someone becomes "
        "{sure} % sure, or surer."
    ),
    "lucky_never": "However lucky the numbers are, nobody becomes surer than {times} of {out_of}.",
    "lucky_never_over": "However unlikely that is, someone may become surer than {times} of {out_of}.",
    "lucky_so_far": "So far no numbers can have made anybody surer than {times} of {out_of}.",
    "lucky_so_far_over": (
        "However unlikely that is, numbers so far may have made someone surer than {times} of {out_of}."
    ),
    "two_values": (
        "Which of two possible records is somebody's can be told right at most {times} times out of {out_of}; with a "
        "coin, {coin}."
    ),
    "two_values_over": (
        "Which of two possible records is somebody's may be told right more than {times} times out of {out_of}; with a "
        "coin, {coin}."
    ),
    "doubt_older": (
        "{number} of the answers protected one record: of a {unit} with several, all of this may be too low."
    ),
    "doubt_late": LATE,
    "doubt_records": "All of this is about one record: of a person with several, it may be too low.",
    "label_doubts": "caution",
    "a_person": "a person",
    "one_record": "one record",
    "ledger_spent": "spent",
    "ledger_spent_is": "eps {eps} by {queries} queries",
    "ledger_risk_with": (
        "An attacker who gives even odds, and knows everybody else, is right about whether {who} is in these data "
        "at most {times} times out of {out_of} by all answers together, those to come included, however they are "
        "combined; without them {coin}."
    ),
    "ledger_risk_with_over": (
        "An attacker who gives even odds, and knows everybody else, may be right about whether {who} is in these "
        "data more than {times} times out of {out_of} by all answers together; without them {coin}."
    ),
    "ledger_risk_so_far": (
        "An attacker who gives even odds, and knows everybody else, is right about whether {who} is in these data "
        "at most {times} times out of {out_of} by all answers so far, however they are combined; without them {coin}. "
        "No limit is set."
    ),
    "ledger_risk_so_far_over": (
        "An attacker who gives even odds, and knows everybody else, may be right about whether {who} is in these "
        "data more than {times} times out of {out_of} by all answers so far; without them {coin}. No limit is set."
    ),
    "ledger_fixed": "if fixed",
    "ledger_fixed_is": (
        "had these eps been fixed beforehand, right at most {times} times out of {out_of}; that is no promise where "
        "later questions had to do with earlier answers"
    ),
    "ledger_fixed_is_over": "had these eps been fixed beforehand, right more than {times} times out of {out_of}",
    "label_lucky": "luck",
    "label_two_values": "two records",
    "left_success": "one more answer may still reach success {success}",
    "left_success_none": "no success is left",
    "left_success_hardly": "hardly any success is left",
    "so_far_limit": (
        "This counts one release. All releases together, those to come included: at most {times} of {out_of}."
    ),
    "so_far_limit_over": "This counts one release. All releases together may reach more than {times} of {out_of}.",
    "together_limit": (
        "all releases together, those to come included: right at most {times} times out of {out_of}, however they are "
        "combined; eps {eps} so far"
    ),
    "together_limit_over": (
        "all releases together, those to come included: right more than {times} times out of {out_of}; eps {eps} so far"
    ),
    # Trade-off curves.
    "tradeoff_title": "Is one person in the data? The best test",
    "tradeoff_alarms": "false alarms, of 100 people who are not",
    "tradeoff_missed": "missed, of 100 people who are",
    "tradeoff_coin": "a coin",
    "tradeoff_exact": "{name}",
    "tradeoff_bound": "{name}, at worst",
    "tradeoff_filter": "what a budget counts",
    "tradeoff_allowed": "limit of all answers",
    "tradeoff_of_alarms": "false alarms of 100",
    "tradeoff_of_missed": "missed of 100, at least",
    "tradeoff_of_coin": "by a coin",
    "tradeoff_right": (
        "By this answer, an attacker who gives even odds is right at most {times} times out of {out_of}; with a coin, "
        "{coin}."
    ),
    "tradeoff_right_over": (
        "By this answer, an attacker who gives even odds may be right more than {times} times out of {out_of}; with a "
        "coin, {coin}."
    ),
    "tradeoff_right_all": (
        "By all answers together, an attacker who gives even odds is right at most {times} times out of {out_of}; with "
        "a coin, {coin}."
    ),
    "tradeoff_right_all_over": (
        "By all answers together, an attacker who gives even odds may be right more than {times} times out of "
        "{out_of}; with a coin, {coin}."
    ),
    # Lorenz curves.
    "lorenz_title": "Who has how much of all incomes",
    "lorenz_people": "of 100 people, the poorest",
    "lorenz_income": "have so much of 100 of all incomes",
    "lorenz_equal": "if all had the same",
}
