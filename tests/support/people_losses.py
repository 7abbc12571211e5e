"""Privacy loss between the answers about two data sets, of which one lacks somebody."""

from pdrisk import Dataset
from pdrisk._audit import replay
from pdrisk._mechanisms import discrete_laplace

BOUNDS = {"x": (0, 10), "y": (0, 10)}


def dataset(frame, **said):
    """A Dataset of a frame with the same secret as any other."""
    bounds = {column: own for column, own in BOUNDS.items() if column in frame and frame[column].dtype == float}
    return dataset_of(frame, bounds=bounds, **said)


def dataset_of(data, bounds=BOUNDS, **said):
    """The same of data of any kind."""
    d = Dataset(data, person="pid", bounds=bounds, **said)
    object.__setattr__(d._known_people, "secret", lambda: b"q" * 32)
    return d


def loss(ask, one, other):
    """Privacy loss between the answers about two frames, with the noise of the first."""
    return loss_between(ask, dataset(one), dataset(other))


def loss_between(ask, one, other):
    """Privacy loss between the answers about two data, with the noise of the first."""
    first = replay.recorded(ask, one)
    assert not (isinstance(first.shown[0], tuple) and str(first.shown[0][0]).endswith("Error")), first.shown
    left, found = iter(first.draws), []

    def draw(mechanism, summary):
        before = next(left, None)
        if before is None:
            found.append(float("inf"))
            return mechanism.draw(summary, discrete_laplace)
        found.append(replay._compared(before, mechanism, summary))
        return before.drawn.copy()

    with replay._drawing_by(draw):
        shown = replay._shown(ask, other)
    assert next(left, None) is None
    assert shown == first.shown
    return sum(each for each in found if each is not None)  # None: its law depends on random numbers not shown
