"""What the page of drawn questions says of rivals with several seeds, by hand."""

from math import inf

from tests.benchmarks.drawn_questions import BUDGETS, FAMILIES, RULES, SEEDS, Tried, page, seeds_of


def test_shares_are_those_of_each_seed_and_distances_of_the_seed_in_the_middle() -> None:
    """On four questions the first seed solves two, the second three, the third one."""
    tried = Tried([(0.0, 0.0, 0.0), (0.0, 0.0, 0.02), (0.1, 0.0, 0.05), (inf, 0.04, 0.03)])
    assert (tried.shares, tried.said) == ([0.25, 0.5, 0.75], "50% (25% to 75%)")
    assert (tried.middle, tried.at(0.5), tried.at(0.9)) == ([0.0, 0.0, 0.05, 0.04], "4.00%", "5.00%")
    assert Tried([(0.0,), (0.3,)]).said == "50%"


def test_a_page_has_a_table_for_each_budget_and_rules_are_asked_once() -> None:
    assert {seeds_of(rule) for rule in RULES} == {SEEDS[:1]}
    assert seeds_of("alternating") == SEEDS
    rivals = {rival: Tried([(0.0,) * len(seeds_of(rival))]) for rival in (*RULES, "alternating")}
    text = page({seconds: dict.fromkeys(FAMILIES, rivals) for seconds in BUDGETS}, len(FAMILIES))
    assert [f"## {seconds:g} s for each rival" in text for seconds in BUDGETS] == [True] * len(BUDGETS)
    assert text.count("| alternating | 100% | 0.00% | 0.00% | 0.00% |") == len(BUDGETS)
