"""Ledger: a budget that holds, paid before the data is read, with a record of every question and its cost.

question ─> Ledger.pay ─> one transaction: limits checked, recorded, spent ─> (data read, noise drawn)
                     └──> BudgetExceededError: recorded as refused, nothing spent
"""

from pdrisk._ledger.accounts.ambient import innermost, warn_of_others
from pdrisk._ledger.accounts.audit import verify
from pdrisk._ledger.accounts.curator_facts import Meaning
from pdrisk._ledger.accounts.memory import Identity
from pdrisk._ledger.accounts.remaining import Remaining
from pdrisk._ledger.ledger import Ledger
from pdrisk._ledger.payment import Payment, check_curator, ledger_for, opened_ledger, paying
from pdrisk._ledger.rules.limits import Limits
from pdrisk._ledger.rules.policy import LeastGroup, Policy
from pdrisk._ledger.rules.question import key_text
from pdrisk._ledger.store.location import store_at
from pdrisk._ledger.store.secret import secret

__all__ = [
    "Identity",
    "LeastGroup",
    "Ledger",
    "Limits",
    "Meaning",
    "Payment",
    "Policy",
    "Remaining",
    "check_curator",
    "innermost",
    "key_text",
    "ledger_for",
    "opened_ledger",
    "paying",
    "secret",
    "store_at",
    "verify",
    "warn_of_others",
]
