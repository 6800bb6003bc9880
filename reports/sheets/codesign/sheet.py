"""How answers about joint designs are shown: of one workload or several, on one number of devices or several."""

from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.reports.sheets.codesign.design import design_sheet
from crossopt.reports.sheets.codesign.several import counts_sheet, several_sheet
from crossopt.reports.sheets.sheet import Sheet
from crossopt.solvers.codesign.answer import DesignResult


def sheet(question: Instance | Portfolio | MultiScaleQuestion, result: DesignResult) -> Sheet:
    """What is shown."""
    if isinstance(question, MultiScaleQuestion):
        return counts_sheet(question, result)
    if isinstance(question, Portfolio):
        return several_sheet(question, result)
    return design_sheet(question, result)
