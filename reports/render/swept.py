"""The page of a sweep: how far it is, every run in a table that reads without any script, and axes to choose where a script may run.

The link that saves the table holds it packed, and the script takes it from there: pages of some thousand runs stay small, and nobody is
asked for anything. Columns that are the same in all rows are told once, below.
"""

from base64 import b64encode
from collections.abc import Sequence
from gzip import compress
from html import escape
from typing import Final

from crossopt.reports.drawing.plots import Line, lines
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.render.html import ProofBox, figure, frame, heading, listing, section, table, text_html
from crossopt.reports.render.runs import Cells, Value, axis_columns, csv_of
from crossopt.reports.sheets.amounts import several, with_unit
from crossopt.solvers.sweeps.asking import Tally
from crossopt.solvers.sweeps.listed import Listed

MOST: Final = 5_000
"""Rows of a page; a browser has trouble with more."""
_NOT_PROVED: Final = "No proof was repeated for this page: verdicts are those in the files; `crossopt sweep check` repeats the proofs."
_SHOWN: Final = ("engine", "seed", "status", "value", "unit", "bound", "gap", "plan", "note")
_LINES, _PLACES = 8, 24
"""Courses and places that a picture can tell apart."""
_WAYS: Final = """\
<p class="soft" id="ways" hidden>Show <select id="shown"></select> along <select id="along"></select>
where <span id="where"></span> <label>filter <input id="words" size="14"></label></p>
<noscript><p class="soft">Where scripts run, axes and figures may be chosen here; every run stands below.</p></noscript>
<div id="drawn"></div>"""


def swept_page(listed: Listed, cells: Cells, found: Tally) -> str:
    """The page, which claims nothing about runs that were not asked."""
    axes = _axes(listed, cells)
    parts = [f"{found.proved:,} of {found.runs:,} runs are proved"]
    parts += [f"{found.infeasible:,} of these infeasible"] if found.infeasible else []
    parts += [f"{found.open:,} have no proof"] if found.open else []
    parts += [f"{found.refused:,} were refused by the engine"] if found.refused else []
    parts += [f"{found.failed:,} failed"] if found.failed else []
    parts += [f"{found.left:,} were not run yet"] if found.left else []
    names, label = ", ".join(axes), "proved, as the files say" if found.proved == found.runs else "not all proved"
    return frame(
        listed.title,
        (
            heading(
                listed.title, f"{several(len(listed.points), 'point')}, {several(found.runs, 'run')}{f', along {names}' if names else ''}."
            ),
            ProofBox(label, f"{', '.join(parts)}.", found.proved == found.runs, note=_NOT_PROVED, stated=True),
            section("Along the axes", _picture(listed, cells, axes), _WAYS),
            section("Every run", _saved(listed, cells), f'<div id="runs">{_table(cells, axes)}</div>'),
            section("The same of all", listing(_shared(cells))),
            section("Not used", listing(list(cells.faults))),
            f'<script type="application/json" id="axes">{_json(axes)}</script>',
        ),
        SCRIPT,
    )


def _axes(listed: Listed, cells: Cells) -> list[str]:
    """The columns by which runs differ: axes, and what else tells them apart."""
    return [*axis_columns(listed), *(head for head in ("subject", "engine", "seed") if len({row.get(head) for row in cells.rows}) > 1)]


def _json(axes: Sequence[str]) -> str:
    """A list of names that no tag ends early."""
    return "[" + ",".join('"' + name.translate({34: '\\"', 92: "\\\\", 60: "\\u003c", 10: " "}) + '"' for name in axes) + "]"


def _saved(listed: Listed, cells: Cells) -> str:
    """A link that saves the table, with all its columns, packed; where scripts may run it is unpacked before."""
    name = escape("".join(sign if sign.isalnum() else "-" for sign in listed.title)[:60])
    packed = b64encode(compress(csv_of(cells).encode(), 9, mtime=0)).decode()
    link = f'<a id="csv" download="{name}.csv.gz" href="data:application/gzip;base64,{packed}">Save as CSV</a>'
    return f'<p>{link}<span id="packed"> (packed by gzip)</span></p>'


def _table(cells: Cells, axes: Sequence[str]) -> str:
    every = {head: {row.get(head) for row in cells.rows} for head in _SHOWN}
    shown = [head for head in _SHOWN if head not in axes and not every[head] <= {None, ""}]
    constant = {head for head in shown if len(every[head]) == 1 and len(cells.rows) > 1}
    heads = [*(axes or ["question"]), *(head for head in shown if head not in constant or head in {"value", "bound"})]
    rows = [[_short(row.get(head)) for head in heads] for row in cells.rows]
    unit = f" in {next(iter(every['unit']))}" if "unit" in constant else ""
    titles = [f"{head}{unit}" if head in {"value", "bound"} else head for head in heads]
    return table(titles, rows, numbers=[column for column, head in enumerate(heads) if head in {"value", "bound", "gap"}], wide=True)


def _short(cell: Value) -> str:
    return "" if cell is None else f"{cell:.5g}" if isinstance(cell, float) else str(cell)


def _shared(cells: Cells) -> list[str]:
    """What every run has, so that no column tells it."""
    every = {head: {row.get(head) for row in cells.rows} for head in cells.heads}
    return [f"{head}: {_short(next(iter(found)))}" for head, found in every.items() if len(found) == 1 and found not in ({None}, {""})]


def _picture(listed: Listed, cells: Cells, axes: Sequence[str]) -> str:
    """The values along the first axis, where they are few and above zero."""
    if not listed.axes or not axes:
        return ""
    places = list(dict.fromkeys(str(row.get(axes[0])) for row in cells.rows))
    courses = dict[str, dict[str, float]]()
    for row in cells.rows:
        value = row.get("value")
        if isinstance(value, float | int) and value > 0.0:
            name = ", ".join(str(row.get(axis)) for axis in axes[1:] if row.get(axis)) or "value"
            courses.setdefault(name, {})[str(row.get(axes[0]))] = float(value)
    units = {str(row.get("unit")) for row in cells.rows if row.get("unit")}
    if not 0 < len(courses) <= _LINES or len(places) > _PLACES or len(units) > 1:
        return ""
    curves = [Line(name, tuple(found.get(value) for value in places), (False,) * len(places)) for name, found in courses.items()]
    values = [value for found in courses.values() for value in found.values()]
    aims = {str(row["objective"]) for row in cells.rows if row.get("objective")}
    upward = with_unit(next(iter(aims)).replace("_", " ") if len(aims) == 1 else "value", next(iter(units), ""))
    described = "; ".join(f"{line.label}: {', '.join(_short(value) or 'none' for value in line.values)}" for line in curves)
    titles = Titles("swept", f"{upward} along {text_html(axes[0])}", f"{described}.")
    return figure(lambda width: lines(titles.at(width), places, curves, (axes[0], upward), (min(values), max(values))))


SCRIPT: Final = r"""
"use strict";
const byId = name => document.getElementById(name);
const made = (kind, inside, given) => Object.assign(document.createElement(kind), {textContent: inside || ""}, given);
const read = text => {
  const all = [[""]];
  let inside = false;
  for (let i = 0; i < text.length; i++) {
    const sign = text[i], row = all[all.length - 1], last = row.length - 1;
    if (inside && sign === '"' && text[i + 1] === '"') { row[last] += '"'; i++; }
    else if (sign === '"') inside = !inside;
    else if (inside) row[last] += sign;
    else if (sign === ",") row.push("");
    else if (sign === "\n") all.push([""]);
    else row[last] += sign;
  }
  return all.filter(row => row.length > 1);
};
const axes = JSON.parse(byId("axes").textContent);
let rows = [], heads = [];
const unpacked = async link => {
  const packed = Uint8Array.from(atob(link.href.slice(link.href.indexOf(",") + 1)), sign => sign.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
};
const at = name => heads.indexOf(name), values = name => [...new Set(rows.map(row => row[at(name)]))];
const told = row => heads.map((head, i) => row[i] && head + ": " + row[i]).filter(word => word).join("\n");
const short = text => text !== "" && isFinite(text) ? String(Number(Number(text).toPrecision(5))) : text;
const tied = name => name.length < 24 ? name.replace(/ /g, "\u00a0") : name;
const chosen = name => byId("of " + name).value;

function cell(row, shown) {
  return row ? made("td", short(row[shown]), {className: "n", title: told(row)}) : made("td");
}

function draw() {
  const along = byId("along").value, shown = at(byId("shown").value), words = byId("words").value.toLowerCase();
  const fits = row => axes.every(name => !chosen(name) || row[at(name)] === chosen(name));
  const kept = new Set(rows.filter(row => fits(row) && row.join(" ").toLowerCase().includes(words)));
  const others = axes.filter(name => name !== along), places = values(along), courses = new Map();
  kept.forEach(row => {
    const name = others.map(other => row[at(other)]).filter(word => word).join(", ") || "all";
    courses.set(name, (courses.get(name) || new Map()).set(row[at(along)], row));
  });
  const drawn = made("table"), top = made("tr"), box = made("div", "", {className: "table many"});
  top.append(made("th"), ...places.map(place => made("th", place, {className: "n"})));
  drawn.append(top);
  courses.forEach((found, name) => {
    const line = made("tr");
    line.append(made("th", tied(name), {scope: "row"}), ...places.map(place => cell(found.get(place), shown)));
    drawn.append(line);
  });
  box.append(drawn);
  byId("drawn").replaceChildren(box);
  document.querySelectorAll("#runs tbody tr").forEach((line, i) => { line.hidden = !kept.has(rows[i]); });
}

const filled = name => rows.some(row => row[at(name)] !== "") && rows.every(row => isFinite(row[at(name)]));

function begin(text) {
  const link = byId("csv");
  link.href = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
  link.download = link.download.replace(/\.gz$/, "");
  byId("packed").remove();
  [heads, ...rows] = read(text);
  const figures = heads.filter(name => filled(name) && !axes.includes(name));
  for (const name of [...figures, "status", "plan"].filter(name => at(name) >= 0))
    byId("shown").append(made("option", name, {selected: name === "value"}));
  for (const name of axes) {
    byId("along").append(made("option", name));
    const choice = made("select", "", {id: "of " + name, onchange: draw}), label = made("label", name + " ");
    choice.append(made("option", "all", {value: ""}), ...values(name).map(value => made("option", value, {value})));
    label.append(choice);
    byId("where").append(label, " ");
  }
  if (axes.length) {
    byId("ways").hidden = false;
    byId("shown").onchange = byId("along").onchange = byId("words").oninput = draw;
    draw();
  }
}

if (typeof DecompressionStream !== "undefined") unpacked(byId("csv")).then(begin);
"""
