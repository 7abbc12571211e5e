"""A budget that holds: what was asked of a dataset, by whom, and what it cost; paid before the data is read.

question ─> Ledger.pay ─> one transaction: limits checked, recorded, spent ─> (data read, noise drawn)
                     └──> BudgetExceededError: recorded as refused, nothing spent
"""

from pdrisk.ledger.book import Ledger
from pdrisk.ledger.limits import Limits
from pdrisk.ledger.payment import ledger_for, paying
from pdrisk.ledger.policy import Policy
from pdrisk.ledger.remaining import Remaining

__all__ = ["Ledger", "Limits", "Policy", "Remaining", "ledger_for", "paying"]
