"""A page about several workloads on one chip: the chip once, and for each workload its plan, its time and its memory."""

from typing import Any

from crossopt.reports.facts.design import Asked, Facts
from crossopt.reports.pages.design import assumptions_section, question_section
from crossopt.reports.pages.evaluated import Of, chip_rows, chip_section, limits_section, memory_section, time_section, uses_lettered
from crossopt.reports.pages.machine import network_section, operators_section
from crossopt.reports.pages.search import search_section
from crossopt.reports.pages.shell import Page, ProofBox, heading, listing, paragraph, section, table, tiles
from crossopt.reports.pages.step import step_section
from crossopt.reports.sheets.amounts import count_of, seconds_of, time_of
from crossopt.reports.texts.workloads import OF_PLANS, figure_of, joint_proof
from crossopt.solvers.codesign.answer import DesignResult, Share


def several_page(result: DesignResult, asked: tuple[Asked, ...], facts: tuple[Facts, ...], data: object) -> Page:
    """The page; `asked` are the questions of the workloads, `data` is the result as it was read."""
    name = result.question["name"]
    head = (heading(name, _sentence(result, asked)), _verdict(result))
    question = question_section(result.question, Asked("", _terms(asked), _open(asked)))
    if result.answer is None or result.details is None:
        return Page(name, (*head, question), data)
    designs, shares = result.answer.designs, result.details.shares
    parts = [part for number, (share, own) in enumerate(zip(shares, facts, strict=True), 1) for part in _share(number, share, own)]
    chip = section("The chip that is chosen", table(("", ""), chip_rows(designs[0], shares[0].evaluation, facts[0])))
    chosen = (chip, _workloads(shares, [design["words"] for design in designs]), chip_section(facts[0]), _limits(shares))
    last = (_search(result), assumptions_section(facts[0]), _proof(result))
    return Page(name, (*head, _tiles(result, shares), question, *chosen, *parts, *last), data)


def _sentence(result: DesignResult, asked: tuple[Asked, ...]) -> str:
    aim = "the least sum of weighted values" if result.question["combine"] == "weighted_sum" else "the least regret of the worst one"
    return f"Which one chip, with a plan for each of {len(asked)} workloads, has {aim}?"


def _verdict(result: DesignResult) -> ProofBox:
    label = "proved optimal" if result.status == "OPTIMAL" else f"proved within {result.gap_asked:.2%}" if result.proved else "not proved"
    if result.answer is None:
        label = "proved: no design" if result.proved else "no design found"
    return ProofBox(label, _proof_words(result), result.proved)


def _proof_words(result: DesignResult) -> str:
    words = joint_proof(result)
    return words[0].upper() + words[1:]


def _terms(asked: tuple[Asked, ...]) -> tuple[tuple[str, str], ...]:
    """Each workload, and once what they share."""
    own = ("workload", "model", "work")
    each = [(f"{name} {number}", words) for number, one in enumerate(asked, 1) for name, words in one.terms if name in own]
    return (*each, *(term for term in asked[0].terms if term[0] not in own))


def _open(asked: tuple[Asked, ...]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Choices of the chip once, and of each workload where its options are others."""
    first = dict(asked[0].open)
    others = [
        (f"{name} (workload {number})", options)
        for number, one in enumerate(asked[1:], 2)
        for name, options in one.open
        if first.get(name) != options
    ]
    return (*asked[0].open, *others)


def _tiles(result: DesignResult, shares: tuple[Share, ...]) -> str:
    bound = "none" if result.bound is None else figure_of(result.bound, result)
    facts = [(result.question["combine"].replace("_", " "), figure_of(result.value, result)), ("lower bound", bound)]
    facts += [("gap", f"{result.gap:.2%}")] if result.gap is not None else []
    return tiles([*facts, *((f"a step of {share.name}", time_of(share.evaluation["step_time"])) for share in shares)])


def _workloads(shares: tuple[Share, ...], plans: list[str]) -> str:
    rows = []
    for share, plan in zip(shares, plans, strict=True):
        regret = f"{share.weight:g}" if share.regret is None else f"{share.regret:.2%}"
        time, tokens = time_of(share.evaluation["step_time"]), count_of(round(share.evaluation["tokens_per_second"]))
        rows.append((share.name, regret, time, tokens, f"{share.evaluation['utilisation']:.1%}", plan))
    weighed = "weight" if shares[0].regret is None else "above its optimum alone"
    heads = ("workload", weighed, "step time", "tokens a second", "of peak", "plan")
    return section("The workloads", table(heads, rows, numbers=(1, 2, 3, 4)))


def _share(number: int, share: Share, facts: Facts) -> tuple[str, ...]:
    of = Of(share.name, number)
    return (
        *(
            time_section(share.evaluation, of),
            step_section(facts.step, of, uses_lettered(share.evaluation)),
            operators_section(facts.roofs, of),
        ),
        *(network_section(facts.network, of), memory_section(facts, share.evaluation, of)),
    )


def _limits(shares: tuple[Share, ...]) -> str:
    """Limits of the chip once, those of a plan for each workload."""
    own = [
        {**limit, "name": f"{limit['name']}, {share.name}"}
        for share in shares
        for limit in share.evaluation["limits"]
        if limit["name"] in OF_PLANS
    ]
    return limits_section([*own, *(limit for limit in shares[0].evaluation["limits"] if limit["name"] not in OF_PLANS)])


def _search(result: DesignResult) -> str:
    axis = result.question["combine"].replace("_", " ")
    return search_section("best design", axis, result)


def _proof(result: DesignResult) -> str:
    alone = [f"{one.question['name']} alone: {one.value:.6g} {one.question['unit']}, by {one.proved_by}." for one in result.parts]
    told = "Every plan was priced anew for this page."
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    made = f"Answered by the engine {result.engine} in {seconds_of(result.seconds)}{f', with {versions}' if versions else ''}."
    return section("How this is known", paragraph(_proof_words(result)), listing(alone), paragraph(told), paragraph(made, "soft"))
