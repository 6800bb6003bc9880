"use strict";
(() => {
// Everything is there to be read without this script. It adds values under the pointer, steps from mark to mark by key, a closer look
// at large pictures, and tables that are sorted, filtered and kept as CSV. It fetches nothing and stores nothing.
const make = (tag, words, given) => Object.assign(document.createElement(tag), {textContent: words}, given);
const clean = text => text.replace(/\u00a0/g, " ").replace(/\u2011/g, "-").trim();

// --- what marks say ---
const tip = make("div", "", {className: "tip", hidden: true});
tip.setAttribute("role", "status");
document.body.append(tip);
const hide = () => { tip.hidden = true; document.querySelectorAll(".at").forEach(mark => mark.classList.remove("at")); };
const show = (mark, x, y) => {
  hide();
  tip.textContent = mark.dataset.tip;
  tip.hidden = false;
  mark.classList.add("at");
  tip.style.left = Math.max(4, Math.min(x + 12, innerWidth - tip.offsetWidth - 4)) + "px";
  tip.style.top = (y + 20 + tip.offsetHeight > innerHeight ? y - 12 - tip.offsetHeight : y + 20) + "px";
};
for (const words of document.querySelectorAll("svg :not(svg) > title")) {
  words.parentNode.dataset.tip = words.textContent;
  words.remove();
}
const over = event => {
  const mark = event.target.closest && event.target.closest("[data-tip]");
  if (mark) show(mark, event.clientX, event.clientY); else hide();
};
document.addEventListener("pointermove", over);
document.addEventListener("pointerdown", over);
addEventListener("scroll", hide, {passive: true});
for (const svg of document.querySelectorAll("svg")) {
  const marks = [...svg.querySelectorAll("[data-tip]")];
  if (!marks.length) continue;
  let place = -1;
  svg.tabIndex = 0;
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (event.key === "Escape") hide();
    if (!step) return;
    event.preventDefault();
    place = (place + step + marks.length) % marks.length;
    if (place < 0) place = marks.length - 1;
    const box = marks[place].getBoundingClientRect();
    show(marks[place], box.x + box.width / 2, box.y + box.height / 2);
  });
}

// --- a closer look ---
const tools = (...buttons) => { const row = make("div", "", {className: "tools"}); row.append(...buttons); return row; };
const button = (words, does, label) => {
  const one = make("button", words, {type: "button", onclick: does});
  if (label) one.setAttribute("aria-label", label);
  return one;
};
for (const figure of document.querySelectorAll("figure.zooms")) {
  const views = [...figure.querySelectorAll("svg")].map(svg => {
    const whole = svg.viewBox.baseVal, [wide, high] = [whole.width, whole.height], seen = {x: 0, y: 0, share: 1};
    const set = () => {
      seen.x = Math.max(0, Math.min(seen.x, wide * (1 - seen.share)));
      seen.y = Math.max(0, Math.min(seen.y, high * (1 - seen.share)));
      svg.setAttribute("viewBox", [seen.x, seen.y, wide * seen.share, high * seen.share].join(" "));
      svg.classList.toggle("near", seen.share < 1);
    };
    const zoom = (factor, across = 0.5, down = 0.5) => {
      const share = Math.max(1 / 32, Math.min(1, seen.share * factor));
      seen.x += across * wide * (seen.share - share);
      seen.y += down * high * (seen.share - share);
      seen.share = share;
      set();
    };
    let last = null;
    svg.addEventListener("pointerdown", event => { if (seen.share < 1) { last = event; svg.setPointerCapture(event.pointerId); } });
    svg.addEventListener("pointerup", () => { last = null; });
    svg.addEventListener("pointermove", event => {
      if (!last) return;
      const pixels = wide * seen.share / svg.clientWidth;
      seen.x -= (event.clientX - last.clientX) * pixels;
      seen.y -= (event.clientY - last.clientY) * pixels;
      last = event;
      set();
    });
    const at = event => {
      const box = svg.getBoundingClientRect();
      return [(event.clientX - box.x) / box.width, (event.clientY - box.y) / box.height];
    };
    svg.addEventListener("dblclick", event => zoom(0.5, ...at(event)));
    svg.addEventListener("wheel", event => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, ...at(event));
    }, {passive: false});
    svg.addEventListener("keydown", event => {
      if (event.key === "+") zoom(0.5);
      if (event.key === "-") zoom(2);
      if (event.key === "0") zoom(32);
    });
    return zoom;
  });
  const all = factor => () => views.forEach(zoom => zoom(factor));
  figure.prepend(tools(button("+", all(0.5), "closer"), button("\u2212", all(2), "farther"), button("whole", all(32), "the whole picture")));
}

// --- tables ---
const TIMES = {ns: 1e-9, us: 1e-6, "\u00b5s": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400, days: 86400};
const scale = unit => {
  if (unit in TIMES) return TIMES[unit];
  const found = unit.match(/^([kKMGTPE])(i?)(B|FLOP|J|W|Hz)/);
  return found ? (found[2] ? 1024 : 1000) ** ("kMGTPE".indexOf(found[1].replace("K", "k")) + 1) : 1;
};
const number = text => {
  const found = text.match(/^([+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*(\S*)/i);
  return found ? parseFloat(found[1].replace(/,/g, "")) * scale(found[2]) : NaN;
};
const compare = (one, other) => {
  const a = number(one), b = number(other);
  if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b) || one.localeCompare(other, "en", {numeric: true});
  return a - b;
};
const quoted = text => {
  const safe = /^[=+@-]/.test(text) && isNaN(number(text)) && text !== "-" ? "'" + text : text;
  return /[",\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
};
const keep = (table, name) => {
  const lines = [...table.rows].filter(row => !row.hidden).map(row => [...row.cells].map(cell => quoted(clean(cell.textContent))).join(","));
  const href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], {type: "text/csv"}));
  make("a", "", {href, download: name + ".csv"}).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
};
const sorts = (table, rows, head, place) => {
  const words = [...head.childNodes], key = make("button", "", {type: "button", className: "sort"});
  key.append(...words);
  head.append(key);
  key.onclick = () => {
    const way = {none: "ascending", ascending: "descending", descending: "none"}[head.getAttribute("aria-sort") || "none"];
    for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
    if (way !== "none") head.setAttribute("aria-sort", way);
    const sorted = way === "none" ? rows : [...rows].sort((a, b) => {
      const [one, other] = [a, b].map(row => clean(row.cells[place].textContent));
      if ([one, other].includes("-")) return (one === "-") - (other === "-");
      return (way === "ascending" ? 1 : -1) * compare(one, other);
    });
    table.tBodies[0].append(...sorted);
  };
};
document.querySelectorAll(".table table").forEach((table, count) => {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 2) return;
  const part = table.closest("section"), title = part && part.querySelector("h2,h3") ? part.querySelector("h2,h3").textContent : "table";
  const name = clean(title).toLowerCase().replace(/[^a-z0-9]+/g, "-") + "-" + (count + 1);
  const row = tools(button("CSV", () => keep(table, name), "keep this table as CSV"));
  if (table.tHead) [...table.tHead.rows[0].cells].forEach((head, place) => { if (clean(head.textContent)) sorts(table, rows, head, place); });
  if (rows.length > 8) {
    const told = make("span", "", {className: "soft"}), box = make("input", "", {type: "search", placeholder: "rows with \u2026"});
    told.setAttribute("role", "status");
    box.setAttribute("aria-label", "show only rows with these words");
    box.oninput = () => {
      const wanted = box.value.toLowerCase();
      for (const one of rows) one.hidden = !clean(one.textContent).toLowerCase().includes(wanted);
      told.textContent = wanted ? rows.filter(one => !one.hidden).length + " of " + rows.length : "";
    };
    row.prepend(box, told);
  }
  table.closest(".table").before(row);
});
})();
