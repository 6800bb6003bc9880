// The page of `crossopt ui`. The text of the question is the state; the server reads it, prices designs of it and solves it.
import {form, make} from "./form.js";

const at = id => document.getElementById(id);
const say = words => { at("said").textContent = words || ""; };
history.replaceState(null, "", "/");  // the key is in a cookie now, and no longer in the address

const ask = async (path, body) => {
  const given = body === undefined ? {} : {method: "POST", body: body instanceof Blob ? body : JSON.stringify(body)};
  try {
    const answer = await fetch(path, given);
    const found = (answer.headers.get("content-type") || "").startsWith("application/json") ? await answer.json() : {refused: await answer.text()};
    if (answer.status >= 400) found.refused ||= `the server answered ${answer.status}`;
    return found;
  } catch {
    return {refused: "crossopt ui does not answer any more: start it again"};
  }
};

// --- the question: its text, its form, its faults ---
const yaml = at("yaml"), schemas = {};
const question = {origin: "", name: "", kind: "", sound: false, text: null, run: "", solving: false};
const given = more => ({text: yaml.value, origin: question.origin, ...more});
let turn = 0, waiting = 0;

const gutter = faults => {
  const bad = new Set(faults.map(fault => fault.line)), count = yaml.value.split("\n").length;
  at("gutter").replaceChildren(...Array.from({length: count}, (_, place) =>
    make("div", {className: bad.has(place + 1) ? "bad" : ""}, String(place + 1))));
  at("gutter").scrollTop = yaml.scrollTop;
  yaml.style.height = `${Math.max(13, Math.min(count + 1, 34)) * 20 + 16}px`;
  at("gutter").style.height = yaml.style.height;
};
const goTo = fault => {
  const lines = yaml.value.split("\n"), start = lines.slice(0, fault.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
  yaml.focus();
  yaml.setSelectionRange(start + fault.column - 1, start + (lines[fault.line - 1] || "").length);
};
const edit = async (path, value, remove = false) => {
  const done = await ask("/api/edit", given({path, value, remove}));
  say(done.refused);
  if (done.text === undefined) return;
  yaml.value = done.text;
  await read();
};
const read = async () => {
  const mine = ++turn, text = yaml.value;
  if (!text.trim()) { gutter([]); return; }
  sessionStorage.setItem(question.run, JSON.stringify([text, question.name, question.origin]));
  const found = await ask("/api/read", given());
  if (mine !== turn) return;
  if (found.refused) { say(found.refused); return; }
  gutter(found.faults);
  at("faults").replaceChildren(...found.faults.map(fault => make("li", {}, make("button", {type: "button", onclick: () => goTo(fault)},
    make("b", {}, `line ${fault.line}  `), `${fault.path ? `${fault.path}: ` : ""}${fault.message}`))));
  question.sound = !found.faults.length;
  at("go").disabled = question.solving || !question.sound;
  at("size").textContent = question.sound ? found.size : `${found.faults.length} fault${found.faults.length > 1 ? "s" : ""}, nothing solved`;
  if (question.sound) at("sentence").textContent = found.sentence;
  if (found.tree) {
    schemas[found.kind] ||= await ask(`/api/schema/${encodeURIComponent(found.kind)}`);
    if (mine !== turn) return;
    const focused = document.activeElement && document.activeElement.id;
    at("form").replaceChildren(form(schemas[found.kind], found.tree, found.faults, edit));
    if (focused && focused.startsWith("field-")) document.getElementById(focused)?.focus();
  }
  if (found.engines && question.kind !== found.kind) {
    question.kind = found.kind;
    at("engine").replaceChildren(...found.engines.map(name => make("option", {value: name}, name)));
  }
  if (question.sound && text !== question.text) { question.text = text; await levers(mine); }
};
const open = async (text, name, origin = "") => {
  Object.assign(question, {origin, name, text: null});
  yaml.value = text;
  at("shipped").value = origin;
  say("");
  await read();
};
yaml.addEventListener("input", () => { gutter([]); clearTimeout(waiting); waiting = setTimeout(read, 200); });
yaml.addEventListener("scroll", () => { at("gutter").scrollTop = yaml.scrollTop; });
at("save").onclick = () => {
  const href = URL.createObjectURL(new Blob([yaml.value], {type: "application/yaml"}));
  make("a", {href, download: `${question.name || "question"}.yaml`}).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
};

// --- one design behind sliders ---
const squared = words => words.replace(/m\^2/g, "m²");
const picks = {};
let pricing = false, again = false;

const price = async () => {
  if (!question.sound) return;
  if (pricing) { again = true; return; }
  pricing = true;
  const found = await ask("/api/price", given({picks}));
  pricing = false;
  if (again) { again = false; price(); return; }
  if (found.refused) {
    at("price").firstElementChild?.classList.add("stale");
    at("price").querySelector(".refused")?.remove();
    at("price").prepend(make("p", {className: "refused"}, found.refused));
    return;
  }
  const drawn = make("div");
  drawn.innerHTML = found.drawn;  // drawn by the server, with every word escaped
  at("price").replaceChildren(make("p", {}, make("span", {className: `badge ${found.feasible ? "good" : "warn"}`}, found.feasible ? "keeps every limit" : "breaks a limit"),
    make("span", {className: "soft"}, `  priced in ${found.milliseconds.toFixed(0)} ms`)), drawn);
};
const lever = one => {
  picks[one.name] = one.at;
  const few = one.options.length < 4 || one.options.some(words => !/\d/.test(words)), shown = make("output", {}, squared(one.options[one.at]));
  const moved = event => { picks[one.name] = Number(event.target.value); shown.textContent = squared(one.options[picks[one.name]]); price(); };
  const id = `lever-${one.name}`;
  return make("label", {className: "lever"}, make("span", {}, one.label), ...(few
    ? [make("select", {id, onchange: moved}, ...one.options.map((words, place) => make("option", {value: place, selected: place === one.at}, words)))]
    : [make("input", {id, type: "range", min: 0, max: one.options.length - 1, step: 1, value: one.at, oninput: moved}), shown]));
};
const levers = async (mine, result = null, go = true) => {
  const found = await ask("/api/levers", given({result}));
  if (mine !== turn) return;
  if (result && found.refused) { say(found.refused); return; }
  for (const name of Object.keys(picks)) delete picks[name];
  at("unpriced").textContent = found.refused || `${found.begins} Move them as you like; replicas (data) are what the other degrees leave. Every figure is the full model's.`;
  at("levers").replaceChildren(...(found.refused ? [] : found.levers.map(lever)));
  at("price").replaceChildren();
  if (!found.refused) await price();
  if (result && go) at("design").scrollIntoView({behavior: "smooth"});
};

// --- a search, as it goes on ---
const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, given, words) => {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(given)) node.setAttribute(name, value);
  if (words !== undefined) node.textContent = words;
  return node;
};
const digits = value => value === null || value === undefined ? "-" : Number(value.toPrecision(5)).toLocaleString("en", {maximumSignificantDigits: 5});
const chart = (rows, until, unit) => {
  const wide = Math.min(860, at("progress").clientWidth || 860), high = 220, left = 70, right = 12, top = 20, bottom = 40;
  const lines = ["best", "bound"].map(name => rows.filter(row => row[name] !== null && row[name] !== undefined).map(row => [row.seconds, row[name]]));
  const values = lines.flat().map(([, value]) => value);
  if (!values.length) { at("chart").replaceChildren(); return; }
  let low = Math.min(...values), most = Math.max(...values);
  const logs = low > 0 && most / low > 4, scale = logs ? Math.log : value => value;
  if (low === most) { low *= low > 0 ? 0.95 : 1.05; most = most * (most > 0 ? 1.05 : 0.95) || 1; }
  const x = seconds => left + (wide - left - right) * seconds / Math.max(until, 0.1);
  const y = value => top + (high - top - bottom) * (scale(most) - scale(value)) / (scale(most) - scale(low));
  const node = svg("svg", {viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `best ${digits(lines[0].at(-1)?.[1])}, lower bound ${digits(lines[1].at(-1)?.[1])} ${unit}`});
  for (const value of [low, logs ? Math.sqrt(low * most) : (low + most) / 2, most]) {
    node.append(svg("path", {class: "grid", d: `M${left} ${y(value)}H${wide - right}`}), svg("text", {class: "m", x: left - 6, y: y(value) + 4, "text-anchor": "end"}, digits(value)));
  }
  node.append(svg("text", {class: "m", x: left, y: high - 8}, "0 s"), svg("text", {class: "m", x: wide - right, y: high - 8, "text-anchor": "end"}, `${until.toFixed(1)} s`));
  lines.forEach((points, place) => {
    if (!points.length) return;
    const steps = points.map(([seconds, value], one) => `${one ? `H${x(seconds)}V` : `M${x(seconds)} `}${y(value)}`).join("");
    node.append(svg("path", {class: `step k${place}-line`, d: `${steps}H${x(until)}`}));
    node.append(svg("text", {class: `k${place} b`, x: wide - right - 4, y: y(points.at(-1)[1]) + (place ? 14 : -6), "text-anchor": "end"}, place ? "lower bound" : "best"));
  });
  at("chart").replaceChildren(node);
};
const watch = job => new Promise(done => {
  const source = new EventSource(`/api/jobs/${job}`), rows = [];
  let about = {}, began = performance.now(), words = "", timer = 0, took = 0;
  const seconds = () => took || (performance.now() - began) / 1000;
  const draw = () => {
    if (about.what !== "solve") return;
    const last = rows.at(-1) || {}, unit = about.unit ? ` ${about.unit}` : "";
    const gap = last.best && last.bound !== null ? `   gap ${(100 * Math.max(0, last.best - last.bound) / last.best).toFixed(2)}%` : "";
    const best = last.best === null || last.best === undefined ? "no answer yet" : `best ${digits(last.best)}${unit}`;
    at("now").textContent = words || `${seconds().toFixed(1)} s   ${last.words || "reading the question"}   ${best}${last.bound === null || last.bound === undefined ? "" : `   lower bound ${digits(last.bound)}${unit}`}${gap}`;
    at("share").hidden = took > 0 || !/^\d+%/.test(last.words || "");
    at("share").value = parseInt(last.words) || 0;
    chart(rows, Math.max(seconds(), last.seconds || 0), about.unit);
  };
  source.addEventListener("begin", event => {
    about = JSON.parse(event.data);
    rows.length = 0;
    began = performance.now() - 1000 * about.seconds;
    clearInterval(timer);
    timer = setInterval(draw, 250);
    if (about.what !== "solve") return;
    at("progress").hidden = false;
    at("stop").hidden = false;
    at("go").disabled = question.solving = true;
    at("stop").onclick = () => ask("/api/stop", {job});
    draw();
  });
  source.addEventListener("error", () => say("the connection was lost, and is sought again"));
  source.addEventListener("open", () => say(""));
  source.addEventListener("progress", event => { rows.push(...JSON.parse(event.data)); draw(); });
  source.addEventListener("end", event => {
    source.close();
    clearInterval(timer);
    const found = JSON.parse(event.data);
    if (about.what === "solve") {
      at("stop").hidden = true;
      question.solving = false;
      at("go").disabled = !question.sound;
      took = found.seconds;
      if (found.result) rows.push({...rows.at(-1), seconds: took, best: found.best, bound: found.bound});
      words = found.result ? `${found.result.verdict} after ${found.seconds.toFixed(1)} s` : found.said || `ended with code ${found.code}`;
      draw();
    }
    if (found.result) {
      put(found.result);
      if (about.what === "solve") { show([found.result.number]); if (question.kind === "codesign" && question.sound) levers(turn, found.result.number, false); }
    }
    done(found);
  });
});
at("solving").onsubmit = async event => {
  event.preventDefault();
  const found = await ask("/api/solve", given({name: question.name || "question", engine: at("engine").value, limit: at("limit").value.trim()}));
  say(found.refused);
  if (found.job) { at("progress").scrollIntoView({block: "nearest"}); await watch(found.job); }
};

// --- results ---
const results = new Map(), marked = new Set();
const MOODS = {accepted: ["good", "checked: accepted"], unverified: ["warn", "checked: bound solver-reported"], refused: ["warn", "checked: refused"]};
const check = async number => {
  const found = await ask("/api/check", {result: number});
  say(found.refused);
  if (!found.job) return;
  results.get(number).checking = true;
  list();
  await watch(found.job);
};
const list = () => {
  at("none").hidden = results.size > 0;
  at("listed").hidden = at("choose").hidden = !results.size;
  at("compare").disabled = marked.size < 2;
  const button = (words, does) => make("button", {type: "button", onclick: does}, words);
  at("rows").replaceChildren(...[...results.values()].map(one => {
    const [mood, words] = one.check ? MOODS[one.check.mood] : ["", ""];
    const mark = make("input", {type: "checkbox", checked: marked.has(one.number), "aria-label": `mark ${one.name}`, onchange: event => {
      marked[event.target.checked ? "add" : "delete"](one.number);
      at("compare").disabled = marked.size < 2;
    }});
    return make("tr", {className: shown.includes(one.number) ? "shown" : ""}, make("td", {}, mark),
      make("th", {scope: "row"}, `${one.number}. ${one.name}`, make("div", {className: "design"}, squared(one.design))),
      ...["value", "bound", "gap"].map(name => make("td", {className: "n", "data-label": name}, one[name])),
      make("td", {className: "verdict"}, one.verdict, one.check ? make("div", {}, make("span", {className: `badge ${mood}`}, words), make("ul", {className: "lines"}, ...one.check.lines.map(line => make("li", {}, line)))) : null),
      make("td", {}, button("Show", () => show([one.number])), one.checking ? make("span", {className: "soft"}, "checking …") : button("Check", () => check(one.number)),
        make("a", {href: `/results/${one.number}.json`, download: "", className: "button"}, "JSON"), question.kind === "codesign" ? button("To sliders", () => levers(turn, one.number)) : null, button("Remove", () => remove(one.number))));
  }));
};
const put = row => { results.set(row.number, row); list(); if (shown.includes(row.number)) show(shown, false); };
const remove = async number => {
  await ask("/api/drop", {result: number});
  results.delete(number);
  marked.delete(number);
  if (shown.includes(number)) show([]);
  list();
};
let shown = [];
const fitted = frame => {
  const page = frame.contentDocument;
  const fit = () => { frame.style.height = `${page.documentElement.scrollHeight + 2}px`; };
  new ResizeObserver(fit).observe(page.body);
  fit();
};
const show = (numbers, go = true) => {
  shown = numbers;
  list();
  at("frames").replaceChildren();
  if (!numbers.length) return;
  const frame = make("iframe", {title: numbers.map(number => results.get(number).name).join(" beside "), src: `/results/${numbers.join("-")}.html`});
  frame.addEventListener("load", () => fitted(frame));
  at("frames").append(frame);
  if (go) at("results").scrollIntoView({behavior: "smooth"});
};
at("compare").onclick = () => show([...marked]);

// --- files ---
const take = async files => {
  for (const file of files) {
    const found = await ask(`/api/open?name=${encodeURIComponent(file.name)}`, file);
    if (found.refused) say(found.refused);
    else if (found.question !== undefined) await open(found.question, found.name);
    else { put(found.result); show([found.result.number]); await check(found.result.number); }
  }
};
at("pick").onclick = () => at("files").click();
at("files").onchange = async event => { await take([...event.target.files]); event.target.value = ""; };
const over = on => document.body.classList.toggle("over", on);
addEventListener("dragover", event => { event.preventDefault(); over(true); });
addEventListener("dragleave", event => { if (!event.relatedTarget) over(false); });
addEventListener("drop", async event => { event.preventDefault(); over(false); await take([...event.dataTransfer.files]); });

// --- start ---
at("shipped").onchange = async event => {
  const name = event.target.value, found = name && await ask(`/api/shipped/${encodeURIComponent(name)}`);
  if (found && found.text) await open(found.text, name, name); else if (found) say(found.refused);
};
const start = async () => {
  const found = await ask("/api/start");
  if (found.refused) { say(found.refused); return; }
  for (const about of new Set(found.shipped.map(one => one.kind))) {
    const rows = found.shipped.filter(one => one.kind === about);
    at("shipped").append(make("optgroup", {label: about}, ...rows.map(one => make("option", {value: one.name, title: one.about}, one.name))));
  }
  found.results.forEach(put);
  found.jobs.forEach(watch);
  question.run = found.run;
  const left = JSON.parse(sessionStorage.getItem(found.run) || "null");  // a page that is loaded again goes on with its text
  if (left) await open(...left); else if (found.text) await open(found.text, found.name, found.origin);
};
gutter([]);
start();
