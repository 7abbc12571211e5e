"""The pages of trust: every mechanism has a row of proof, the tests it names exist, and the citation is ours."""

import re

import pdrisk
from paths import DOCS, ROOT, TESTS
from pdrisk._mechanisms import MECHANISMS

GUARANTEES = (DOCS / "guarantees.md").read_text(encoding="utf-8")
PROOFS = GUARANTEES.partition("\n## Status of proofs\n")[2].partition("\n## ")[0]
ROWS = [line.split("|")[1:-1] for line in PROOFS.splitlines() if line.startswith("| ")][1:]


def test_every_mechanism_has_a_row():
    listed = re.findall(r"`(\w+)`", " ".join(row[0] for row in ROWS))
    assert set(MECHANISMS) <= set(listed) and len(listed) == len(set(listed))


def test_every_proof_and_test_is_there():
    heads = {
        page: {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^#+ (.*)$", text, re.M)}
        for page, text in ((each.name, each.read_text(encoding="utf-8")) for each in DOCS.glob("*.md"))
    }
    for row in ROWS:
        proofs, tests = re.findall(r"\((\w+\.md)#([\w-]+)\)", row[1]), re.findall(r"`(test_\w+\.py)`", row[2])
        assert proofs and tests
        assert all(head in heads[page] for page, head in proofs)
        assert all([*TESTS.rglob(name)] for name in tests)


def test_the_citation_names_this_version():
    assert f"\nversion: {pdrisk.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
