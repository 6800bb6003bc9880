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
