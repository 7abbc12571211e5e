"""
Figure 1 of the SOEP paper
==========================

Risks by query and variable, as Allmann, Nuñez von Voigt and Tschorsch computed them for the Socio-Economic Panel. You
learn to repeat a published study on your own survey.
"""

import matplotlib.pyplot as plt

import pdrisk

survey = pdrisk.datasets.soep_like(missing="nan")
bounds = {"hours": (0, 18), "distance": (1, 675), "income": (0, 2_700_000)}
survey[list(bounds)].head(3)

# %%
# The real panel needs a contract, so this one is synthetic. The bounds are those of the paper, which took them from
# its data: good enough for a study, not for a release. Few samples and eps keep it short.
study = pdrisk.study.run(
    survey, list(bounds), bounds=bounds, eps=[0.01, 0.1, 0.5, 1, 2, 5, 10], sample_sizes=[0.001, 0.01, 0.1, 1.0],
    repetitions=20, seed=1, progress=False,
)  # fmt: skip
study.pivot_table(index=["column", "statistic"], values=["many_worlds", "two_worlds"], sort=False).round(3)

# %%
# As in the paper, the risk of the maximum varies most, and many worlds look safer than two. No noise is drawn: a risk
# is what an attacker can conclude at most, and is for the curator only.
plt.figure(pdrisk.study.figures.risk_by_query(study))
plt.show()
