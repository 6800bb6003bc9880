"""What the page of drawn questions says of engines with several seeds, by hand."""

from math import inf

import pytest

from tests.benchmarks.drawn_questions import EXACT, RULES, Answers, Tried, page, results, seeds_of
from tests.benchmarks.drawn_sizes import LARGE, SMALL, Drawn


def test_shares_are_those_of_each_seed_and_distances_of_the_seed_in_the_middle() -> None:
    """On four questions the first seed solves two, the second three, the third one."""
    tried = Tried([(0.0, 0.0, 0.0), (0.0, 0.0, 0.02), (0.1, 0.0, 0.05), (inf, 0.04, 0.03)])
    assert (tried.shares, tried.said) == ([0.25, 0.5, 0.75], "50% (25% to 75%)")
    assert (tried.middle, tried.within) == ([0.0, 0.0, 0.05, 0.04], "5.00%")
    assert Tried([(share / 100.0,) for share in range(10)]).within == "8.00%", "one of ten is above"
    assert Tried([(0.0,), (0.3,)]).said == "50%"
    assert Tried([(0.0,), (0.0,)], [True, False]).said == "100%, proves 50%"


@pytest.mark.parametrize("of", [SMALL, LARGE], ids=lambda of: of.name)
def test_rules_and_engines_that_prove_are_asked_once(of: Drawn) -> None:
    assert {seeds_of(of, engine) for engine in (*RULES, *EXACT)} == {of.seeds[:1]}
    assert seeds_of(of, "alternating") == of.seeds


def test_a_page_has_a_table_for_each_size_and_budget_and_says_how_long_proofs_take() -> None:
    engines = (*EXACT, *RULES, "alternating")
    found = {}
    for of in (SMALL, LARGE):
        keys = [(seconds, engine) for seconds in of.budgets for engine in engines]
        above = {key: (0.0,) * len(seeds_of(of, key[1])) for key in keys}
        proof = {"exhaustive": 0.25 if of is SMALL else inf, "boxes": 0.5}
        one = Answers(12_000, proof, above, {key: key[1] == "boxes" for key in keys}, dict.fromkeys(keys, 0.125))
        found[of.name] = [one] * 5
        assert results(of, found[of.name])[of.budgets[0]]["small die"]["boxes"].proved == [True]
    text = page(found)
    assert [f"### {seconds:g} s for each engine" in text for of in (SMALL, LARGE) for seconds in of.budgets] == [True] * 2
    assert text.count("| alternating | 100% | 0.00% | 0.00% | 0.00% | 0.12 s |") == text.count("| boxes | 100%, proves 100% |") == 2
    assert "exhaustive 0.25 s; boxes 0.50 s." in text
    assert "exhaustive more than 30 s; boxes 0.50 s." in text
    assert "Share solved of 1 question each" in text
    assert "Of 1.2e+04 to 1.2e+04 designs" in text
