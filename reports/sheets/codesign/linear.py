"""The section about an integer model: each term of the step as its tangent has it and as the full model does."""

from crossopt.reports.drawing.plots import parity
from crossopt.reports.facts.linear.terms import Linearized, Term
from crossopt.reports.sheets.amounts import time_of
from crossopt.reports.sheets.sheet import Picture, Section, Table, amounts, figures, names

_TITLE = "The integer model against the full one"
_FORMS = {
    "strong": "Tangents are rows that say something of every plan.",
    "weak": "Tangents are rows that speak of their plan alone, behind a big M.",
    "table": "This form takes times from tables over plans and parts of the chip, and rows for single chips instead of tangents.",
    "classic": "This form writes 1/x of each part's rate by straight pieces, which lose a little more than the tangents below.",
    "log": "This form writes products as sums of logarithms, which lose a little more than the tangents below.",
}
_NEAR = 1e-12


def linear_section(linear: Linearized | None) -> Section:
    """The section; empty where no integer model was asked."""
    if linear is None:
        return Section(_TITLE, ())
    form = _form(linear)
    if not linear.terms:
        given = "The chip is given, so that no term had to be made linear: the price of a plan is a number."
        return Section(_TITLE, (form, given))
    return Section(_TITLE, (form, _sentence(linear), *_picture(linear), _table(linear), _rest(linear)))


def _form(linear: Linearized) -> str:
    """What the bound was found with."""
    if linear.rounds:
        return f"The bound was found with the {linear.form} form. {_FORMS.get(linear.form, '')}".strip()
    words = "No round of the integer model ran: bounds on the best chip and prices on the budgets left nothing for a solver."
    return f"{words} Below are the model's tangents all the same, beside the full model." if linear.terms else words


def _sentence(linear: Linearized) -> str:
    worst = max(linear.terms[:-1], key=lambda term: term.error, default=linear.terms[-1])
    step = linear.terms[-1]
    if worst.error <= _NEAR:
        return f"At the chip of this design the tangent of its plan is exact: {time_of(step.full)}, and so is each of its terms."
    return (
        f"At the chip of this design the tangent of its plan is {_share(step.error)} below the step of {time_of(step.full)}; of its terms "
        f"it loses the most of the {worst.name}, {_share(worst.error)}."
    )


def _picture(linear: Linearized) -> tuple[Picture, ...]:
    """The step by the tangent over the step as it is, chip by chip."""
    if not linear.step:
        return ()
    step, pairs = linear.terms[-1], [(full, low) for low, full in linear.step]
    told = f"On {linear.chips:,} other chips the tangent is {_share(step.worst or 0.0)} below the step at the most, and above it on none."
    if any(low > full * (1.0 + 1e-9) for full, low in pairs):
        told = f"On some of {linear.chips:,} other chips the tangent is above the step, which no bound may be."
    one, axes = (step.full, step.linear, "this design"), ("seconds by the full model", "seconds by the tangent")
    caption = f"{told} The broken line is where both are equal."
    title = "The step by the tangent and as it is"
    return (Picture(lambda titles: parity(titles, pairs, one, axes), "", caption, title=title, described=told, zooms=False),)


def _table(linear: Linearized) -> Table:
    drawn, terms = linear.chips > 0, linear.terms
    caption = "Seconds at the chip of this design"
    columns = (
        names("term", (term.name for term in terms)),
        amounts("by the tangent", [term.linear for term in terms], time_of, "s"),
        amounts("by the full model", [term.full for term in terms], time_of, "s"),
        amounts("below it by", [term.error for term in terms], _share),
        *([figures("at worst", [_worst(term) for term in terms])] if drawn else []),
    )
    return Table(columns, caption=f"{caption}; at worst: on {linear.chips:,} drawn chips" if drawn else caption)


def _worst(term: Term) -> str:
    return "-" if term.worst is None else _share(term.worst)


def _rest(linear: Linearized) -> str:
    liked = "at chips that the relaxation liked too much, make the bound"
    role = liked if linear.rounds else "at the best design known and at chips that prices made cheapest, served those prices"
    taken = f"{linear.tangents:,} of them, {role}. " if linear.tangents else ""
    return (
        f"A tangent is near where it is taken{f'; {taken}' if taken else '. '}"
        "Each is lowered by 1e-9 of its largest figures for rounding. The design itself is priced by the full model."
    )


def _share(share: float) -> str:
    return "0" if abs(share) <= _NEAR else f"{share:.2%}" if share >= 1e-4 else f"{share:.1e}"
