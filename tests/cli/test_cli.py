"""The command line, and the words it uses."""

import re

import pytest

from pdrisk._answer.words import participant, times_right
from pdrisk._cli import demo, main
from pdrisk._core.risks.risk import posterior


@pytest.fixture(scope="module")
def text() -> str:
    return demo()


class TestDemo:
    """The main job: answers, what they mean in words, and the paper's queries with the noise beside each risk."""

    @staticmethod
    def half_widths(text: str) -> tuple[float, float]:
        """Of the first answer's 95 % noise interval, and of the same question's by the paper's mechanism."""
        first = re.search(r"95 % noise interval (-?[\d.]+) to (-?[\d.]+)$", text, re.MULTILINE)
        paper = re.search(r"mechanism='laplace'\)\n.*95 % noise interval (\S+) to (\S+) km", text)
        assert first is not None and paper is not None
        own, other = ((float(ends[2]) - float(ends[1])) / 2 for ends in (first, paper))
        return own, other

    @pytest.mark.slow
    def test_nobody_overlooks_the_noise(self, text: str) -> None:
        own, paper = self.half_widths(text)
        # 337 ln 20 = 1010 km on a mean over (1, 675) at eps = 1; of two_sums some .1 km with 15,000 people.
        assert paper == pytest.approx(1010, abs=1)
        assert 0.05 < own < 0.3

    @pytest.mark.slow
    def test_the_table_holds_every_variable_query_and_eps(self, text: str) -> None:
        table = text.split("The paper's five queries")[1]
        for variable in ("hours", "distance", "income"):
            rows = re.findall(rf"^{variable}, \S+\s+(\w+)(.*)$", table, re.MULTILINE)
            assert [query for query, _ in rows] == ["mean", "median", "min", "max", "var"]
            assert all(cells.count("±") == 5 for _, cells in rows)

    def test_the_risks_are_those_of_the_formulas(self, text: str) -> None:
        worst = re.search(r"^any\s+worst\s+1\s+(.*)$", text, re.MULTILINE)
        assert worst is not None
        # worst_case at eps 0.1 .5 1 2 5: Mehner et al. 2021, the SOEP paper, eq. 5; .62246 .73106 .88080 .99331 up
        assert worst[1].split() == ["0.525", "0.6225", "0.7311", "0.8808", "0.9934"]
        income_max = re.search(r"^income, EUR\s+max\s+\S+\s+(.*)$", text, re.MULTILINE)
        assert income_max is not None
        risks = [float(risk) for risk in re.findall(r"(0\.\d{3,4}) ±", income_max[1])]
        assert risks == sorted(risks)
        assert risks[-1] > 0.9  # the one income of 2.7 million is the maximum

    def test_words_for_a_participant(self, text: str) -> None:
        assert "right 50 times out of 100" in text
        assert "at most 74 times out of 100" in text

    @pytest.mark.slow
    def test_a_larger_eps_means_less_noise(self, text: str) -> None:
        for usual, less in zip(self.half_widths(text), self.half_widths(demo(eps=10)), strict=True):
            assert less == pytest.approx(usual / 10, rel=0.1)

    def test_the_command_prints_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["demo", "--seed", "3"]) == 0
        assert "someone knows everybody else's answers and must say" in capsys.readouterr().out

    @pytest.mark.parametrize(("arguments", "words"), [(["--eps", "0"], "above 0"), (["--seed", "-1"], "seed")])
    def test_a_wrong_request_is_one_sentence(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
    ) -> None:
        assert main(["demo", *arguments]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("pdrisk: ")
        assert words in printed.err


class TestWords:
    """Whole numbers, rounded up, of a hundred unless that would mislead; never "always"."""

    @pytest.mark.parametrize(
        ("eps", "expected"),
        [
            (0.01, (5_025, 10_000)),
            (0.1, (525, 1_000)),  # 53 of 100 would add a fifth to what the release adds
            (1, (74, 100)),
            (2, (89, 100)),
            (5, (994, 1_000)),  # 100 of 100 would say "always"
            (50, (9_999, 10_000)),
        ],
    )
    def test_known(self, eps: float, expected: tuple[int, int]) -> None:
        assert times_right(float(posterior(eps))) == expected

    def test_rounded_up_and_never_always(self) -> None:
        for eps in (0.001, 0.03, 0.2, 0.7, 1.5, 3, 6, 9):
            risk = float(posterior(eps))
            times, out_of = times_right(risk)
            assert risk <= times / out_of < 1

    def test_beyond_words_it_says_more_than(self) -> None:
        assert "more than 9,999 times out of 10,000" in participant(float(posterior(20)))
