"""A budget that holds: what was asked of a dataset, by whom, and what it cost; paid before the data is read.

question ─> Ledger.pay ─> one transaction: limits checked, recorded, spent ─> (data read, noise drawn)
                     └──> BudgetExceededError: recorded as refused, nothing spent
"""

from pdrisk.ledger.ambient import innermost
from pdrisk.ledger.audit import verify
from pdrisk.ledger.book import Ledger
from pdrisk.ledger.curator import Meaning
from pdrisk.ledger.limits import Limits
from pdrisk.ledger.payment import Payment, ledger_for, paying
from pdrisk.ledger.policy import LeastGroup, Policy
from pdrisk.ledger.remaining import Remaining
from pdrisk.ledger.where import store_at

__all__ = [
    "LeastGroup",
    "Ledger",
    "Limits",
    "Meaning",
    "Payment",
    "Policy",
    "Remaining",
    "innermost",
    "ledger_for",
    "paying",
    "store_at",
    "verify",
]
