"""A page about several workloads on one chip: the chip once, and for each workload its plan, its time and its memory."""

from typing import Any

from crossopt.reports.facts.design import Asked, Facts
from crossopt.reports.pages.design import assumptions_section, question_section
from crossopt.reports.pages.evaluated import Of, chip_rows, chip_section, limits_section, memory_section, time_section
from crossopt.reports.pages.machine import network_section, operators_section
from crossopt.reports.pages.search import Search, search_section
from crossopt.reports.pages.shell import Page, heading, listing, paragraph, proof_box, section, table, tiles
from crossopt.reports.pages.step import step_section
from crossopt.reports.texts.design import count_of, seconds_of, time_of
from crossopt.reports.texts.workloads import OF_PLANS, figure_of, joint_proof
from crossopt.solvers.codesign.combined.workloads.result import JointResult, Share


def several_page(result: JointResult, asked: tuple[Asked, ...], facts: tuple[Facts, ...], data: object) -> Page:
    """The page; `asked` are the questions of the workloads, `data` is the result as it was read."""
    name = result.instance["name"]
    head = (heading(name, _sentence(result, asked)), _verdict(result))
    question = question_section(result.instance, Asked("", _terms(asked), _open(asked)))
    if not result.shares:
        return Page(name, (*head, question), data)
    parts = [part for number, (share, own) in enumerate(zip(result.shares, facts, strict=True), 1) for part in _share(number, share, own)]
    rows = chip_rows(result.shares[0].design, result.shares[0].evaluation)
    chosen = (section("The chip that is chosen", table(("", ""), rows)), _workloads(result), chip_section(facts[0]), _limits(result))
    last = (_search(result), assumptions_section(facts[0]), _proof(result))
    return Page(name, (*head, _tiles(result), question, *chosen, *parts, *last), data)


def _sentence(result: JointResult, asked: tuple[Asked, ...]) -> str:
    aim = "the least sum of weighted values" if result.instance["combine"] == "weighted_sum" else "the least regret of the worst one"
    return f"Which one chip, with a plan for each of {len(asked)} workloads, has {aim}?"


def _verdict(result: JointResult) -> str:
    label = "proved optimal" if result.status == "OPTIMAL" else f"proved within {result.gap_asked:.2%}" if result.proved else "not proved"
    if not result.shares:
        label = "proved: no design" if result.proved else "no design found"
    return proof_box(label, _proof_words(result), result.proved)


def _proof_words(result: JointResult) -> str:
    words = joint_proof(result)
    return words[0].upper() + words[1:]


def _terms(asked: tuple[Asked, ...]) -> tuple[tuple[str, str], ...]:
    """Each workload, and once what they share."""
    shared = [term for term in asked[0].terms if term[0] != "workload"]
    return (*((f"workload {number}", dict(one.terms)["workload"]) for number, one in enumerate(asked, 1)), *shared)


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


def _tiles(result: JointResult) -> str:
    bound = "none" if result.bound is None else figure_of(result.bound, result)
    facts = [(result.instance["combine"].replace("_", " "), figure_of(result.value, result)), ("lower bound", bound)]
    facts += [("gap", f"{result.gap:.2%}")] if result.gap is not None else []
    return tiles([*facts, *((f"a step of {share.name}", time_of(share.evaluation["step_time"])) for share in result.shares)])


def _workloads(result: JointResult) -> str:
    rows = []
    for share in result.shares:
        regret = f"{share.weight:g}" if share.regret is None else f"{share.regret:.2%}"
        time, tokens = time_of(share.evaluation["step_time"]), count_of(round(share.evaluation["tokens_per_second"]))
        rows.append((share.name, regret, time, tokens, f"{share.evaluation['utilisation']:.1%}", share.design["words"]))
    weighed = "weight" if result.shares[0].regret is None else "above its optimum alone"
    heads = ("workload", weighed, "step time", "tokens a second", "of peak", "plan")
    return section("The workloads", table(heads, rows, numbers=(1, 2, 3, 4)))


def _share(number: int, share: Share, facts: Facts) -> tuple[str, ...]:
    of = Of(share.name, number)
    return (
        *(time_section(share.evaluation, of), step_section(facts.step, of), operators_section(facts.roofs, of)),
        *(network_section(facts.network, of), memory_section(facts, share.evaluation, of)),
    )


def _limits(result: JointResult) -> str:
    """Limits of the chip once, those of a plan for each workload."""
    own = [
        {**limit, "name": f"{limit['name']}, {share.name}"}
        for share in result.shares
        for limit in share.evaluation["limits"]
        if limit["name"] in OF_PLANS
    ]
    return limits_section([*own, *(limit for limit in result.shares[0].evaluation["limits"] if limit["name"] not in OF_PLANS)])


def _search(result: JointResult) -> str:
    axis = result.instance["combine"].replace("_", " ")
    return search_section(Search("best design", axis, result.engine, result.trace, result.seconds, result.bound, result.gap))


def _proof(result: JointResult) -> str:
    alone = [f"{one.instance['name']} alone: {one.value:.6g} {one.instance['unit']}, by {one.proved_by}." for one in result.alone]
    told = "Every plan was priced anew for this page. The proof is told as the result tells it: `crossopt check` carries it out anew."
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    made = f"Answered by the engine {result.engine} in {seconds_of(result.seconds)}{f', with {versions}' if versions else ''}."
    return section("How this is known", paragraph(_proof_words(result)), listing(alone), paragraph(told), paragraph(made, "soft"))
