"""
Choice of epsilon
=================

Three answers planned for a survey of 30,000 people, before there are any data. You learn to start from the risk that
you accept, and to see what it buys.
"""

import matplotlib.pyplot as plt

import pdrisk

# The eps at which an attacker is right at most 60 times out of 100:
round(float(pdrisk.risk.epsilon_for(0.6)), 3)

# %%
# Say how much noise each answer may have; ``plan`` finds the eps of each and says whether all of them fit. The bounds
# come from the questionnaire (hours a day, up to 18) and from an agreement (incomes up to 20,000 euros).
questions = {
    "people": {"count()": {"noise95": 15}, "by": {"state": 16}},
    "mean(hours)": {"noise95": 0.02, "bounds": (0, 18)},
    "median(income)": {"noise95": 10, "bounds": (0, 20_000)},
}
plan = pdrisk.plan(questions, success=0.6, n=30_000)
plan.table[["table", "question", "eps", "noise95", "fits", "success"]].round(4)

# %%
# The frontier is the decision to be made: more noise, or an attacker who is right more often.
frontier = plan.frontier
_, axes = plt.subplots(figsize=(5, 3), dpi=150, layout="constrained")
axes.plot(frontier["noise"], 100 * frontier["success"], marker="o", label="all three answers")
axes.axhline(60, color="#D55E00", linestyle="--", label="accepted")
axes.axhline(50, color="#999999", label="a coin")
axes.set_xscale("log", base=2)
axes.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
axes.set(xlabel="noise, as a multiple of the plan's", ylabel="attacker is right, of 100 times")
axes.legend(frameon=False)
plt.show()
