// A form for a question, made from the JSON schema of its kind. It holds no state: every change is handed to `edit`, which changes the
// text and draws the form anew. A value is as the text has it: text, a list or a mapping.
export const make = (tag, given = {}, ...inside) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...inside.filter(one => one !== null && one !== undefined));
  return node;
};
export const pathText = path => path.reduce((text, step) => typeof step === "number" ? `${text}[${step}]` : text ? `${text}.${step}` : step, "");

const broken = key => key.split("_").flatMap((word, place) => place ? ["_", make("wbr"), word] : [word]);
const SCALARS = ["string", "integer", "number", "boolean"];
const FEW = 8;
let fresh = 0;

export const form = (schema, tree, faults, edit) => {
  const defs = schema.$defs || {};
  const resolved = one => one.$ref ? {...defs[one.$ref.split("/").pop()], ...(one.description ? {description: one.description} : {})} : one;
  const alternatives = one => {
    const found = resolved(one);
    return found.anyOf ? found.anyOf.flatMap(alternatives) : found.type === "null" ? [] : [found];
  };
  const types = one => one.enum ? ["enum"] : [one.type].flat();
  const isScalar = one => one.enum || types(one).some(type => SCALARS.includes(type));
  const isRow = one => types(one).includes("array") && alternatives(one.items).every(isScalar);
  const shapeOf = one => isScalar(one) || isRow(one) ? "line" : types(one).includes("array") ? "list" : one.properties ? "record" : "map";
  const shapeIn = (value, shapes) => {
    if (value === null || typeof value === "string") return "line";
    if (Array.isArray(value)) return shapes.includes("list") && value.some(one => one && typeof one === "object") ? "list" : "line";
    return shapes.includes("record") ? "record" : "map";
  };

  const wordsOf = (options, several) => {
    // Every value that a choice can take, where these are few; null where it is free text.
    const flat = options.flatMap(one => isRow(one) ? alternatives(one.items) : [one]).filter(isScalar);
    const found = new Set();
    for (const one of flat) {
      if (one.enum) one.enum.forEach(word => found.add(String(word)));
      else if (types(one).includes("boolean")) ["false", "true"].forEach(word => found.add(word));
      else if (several && Number.isInteger(one.minimum) && one.maximum - one.minimum < FEW) {
        for (let number = one.minimum; number <= one.maximum; number++) found.add(String(number));
      } else return null;
    }
    return found.size ? [...found] : null;
  };

  const line = (value, options, path, label) => {
    const several = options.some(isRow), words = wordsOf(options, several);
    const id = `field-${pathText(path)}`;
    if (words && several) {
      const chosen = new Set([value].flat().filter(one => one !== null));
      const boxes = words.map(word => make("label", {className: "chip"}, make("input", {
        type: "checkbox", checked: chosen.has(word), id: `${id}-${word}`, onchange: event => {
          chosen[event.target.checked ? "add" : "delete"](word);
          const left = words.filter(one => chosen.has(one));
          if (left.length) edit(path, left.length > 1 ? left : left[0]); else event.target.checked = chosen.add(word) && true;
        }}), make("span", {}, word)));
      return make("div", {className: "chips", role: "group", "aria-label": label}, ...boxes);
    }
    if (words) {
      const known = words.includes(value) ? words : [value === null ? "" : String(value), ...words];
      return make("select", {id, "aria-label": label, onchange: event => edit(path, event.target.value)},
        ...known.map(word => make("option", {value: word, selected: word === value}, word)));
    }
    const scalars = options.filter(isScalar), offered = scalars.flatMap(one => one.enum || []);
    const example = scalars.flatMap(one => one.examples || [])[0] || (several ? "1, 2, 4" : "");
    const list = offered.length ? make("datalist", {id: `list-${++fresh}`}, ...offered.map(word => make("option", {value: word}))) : null;
    const shown = [value].flat().map(one => typeof one === "object" && one !== null ? JSON.stringify(one) : one ?? "").join(", ");
    const input = make("input", {id, value: shown, placeholder: example, spellcheck: false, autocomplete: "off", "aria-label": label, onchange: event => {
      const parts = event.target.value.split(",").map(part => part.trim()).filter(Boolean);
      edit(path, several && parts.length > 1 ? parts : event.target.value.trim());
    }});
    if (list) input.setAttribute("list", list.id);
    return list ? make("span", {className: "listed"}, input, list) : input;
  };

  const adding = (names, about, add) => names.length ? make("select", {className: "add", "aria-label": "add a key", onchange: event => add(event.target.value)},
    make("option", {value: ""}, "+ add …"), ...names.map(name => make("option", {value: name, title: about(name)}, name))) : null;

  const empty = one => {
    // What a new key begins with.
    const options = alternatives(one), words = wordsOf(options, false), first = options[0];
    if (words) return words[0];
    if (first && shapeOf(first) === "record") return Object.fromEntries((first.required || []).map(key => [key, empty(first.properties[key])]));
    if (first && shapeOf(first) === "list") return [empty(first.items)];
    if (first && shapeOf(first) === "map") return {};
    return (first && first.examples || [])[0] || String(first && first.minimum || (first && types(first).some(type => type !== "string") ? 1 : "name"));
  };

  const record = (value, one, path) => {
    const known = one.properties, rows = Object.entries(value).map(([key, inner]) =>
      field(key, inner, known[key], [...path, key], !(one.required || []).includes(key)));
    const names = Object.keys(known).filter(key => !(key in value) && key !== "kind");
    return [...rows, adding(names, name => known[name].description || "", name => name && edit([...path, name], empty(known[name])))];
  };
  const map = (value, one, path) => {
    const name = make("input", {placeholder: "name", size: 10, "aria-label": "name of a new entry"});
    const add = make("button", {type: "button", onclick: () => name.value.trim() && edit([...path, name.value.trim()], empty(one.additionalProperties))}, "add");
    return [...Object.entries(value).map(([key, inner]) => field(key, inner, one.additionalProperties, [...path, key], true)), make("span", {className: "row"}, name, add)];
  };
  const list = (value, one, path) => [
    ...value.map((inner, place) => field(`${place + 1}.${inner && inner.name ? ` ${inner.name}` : ""}`, inner, one.items, [...path, place], value.length > 1)),
    make("button", {type: "button", className: "add", onclick: () => edit([...path, value.length], empty(one.items))}, "+ add one"),
  ];

  const turned = (shape, options, value) => {
    // The same value in another form: a list of numbers as a range, a name as a mapping.
    const first = [value].flat().filter(one => typeof one === "string"), target = options.find(one => shapeOf(one) === shape);
    if (shape === "line") return value && value.from ? value.from : String(empty({anyOf: options.filter(one => shapeOf(one) === "line")}));
    if (shape === "record" && target.properties.from) return {from: first[0] || "1", to: first[first.length - 1] || "8"};
    return empty(target);
  };
  const NAMES = {line: "value", record: "keys", map: "entries", list: "list"};

  const field = (key, value, schemaOf, path, removable) => {
    const options = schemaOf ? alternatives(schemaOf) : [], shapes = [...new Set(options.map(shapeOf))];
    const shape = shapeIn(value, shapes), about = schemaOf && (schemaOf.description || resolved(schemaOf).description) || "";
    const away = removable ? make("button", {type: "button", className: "away", title: `remove ${key}`, "aria-label": `remove ${pathText(path)}`, onclick: () => edit(path, null, true)}, "×") : null;
    const range = shape === "record" && options.some(one => one.properties && one.properties.from && one.properties.to);
    const other = shapes.length > 1 && shapes.includes(shape) ? make("select", {className: "shape", "aria-label": `${pathText(path)} as`, onchange: event => edit(path, turned(event.target.value, options, value))},
      ...shapes.map(one => make("option", {value: one, selected: one === shape}, one === "record" && options.some(two => two.properties && two.properties.from) ? "range" : NAMES[one]))) : null;
    const help = make("p", {className: "help"}, about);
    const fits = options.find(one => shapeOf(one) === shape);
    if (key === "kind" && path.length === 1) return make("div", {className: "field", "data-path": "kind"}, make("span", {className: "key"}, "kind"), make("span", {}, String(value)));
    if (shape === "line" || !fits) {
      const lines = options.filter(one => shapeOf(one) === "line");
      return make("div", {className: "field", "data-path": pathText(path)}, make("span", {className: "key", title: about}, ...broken(key)), line(value, lines, path, pathText(path)), other, away, help);
    }
    const inside = shape === "record" ? record(value, fits, path) : shape === "map" ? map(value, fits, path) : list(value, fits, path);
    return make("fieldset", {className: range ? "range" : "", "data-path": pathText(path)}, make("legend", {}, key, other, away), help, ...inside);
  };

  const root = resolved(schema), drawn = tree && typeof tree === "object" && !Array.isArray(tree) ? record(tree, root, []) : [];
  const box = make("div", {"data-path": ""}, ...drawn);
  for (const fault of faults) {
    let path = fault.path, place = null;
    const at = () => [...box.querySelectorAll("[data-path]")].find(one => one.dataset.path === path);
    while (path && !(place = at())) path = path.match(/^(.*)(\.[^.[\]]+|\[\d+\])$/)?.[1] ?? "";
    (place || box).append(make("p", {className: "fault"}, path === fault.path ? fault.message : `${fault.path}: ${fault.message}`));
    if (place) place.classList.add("wrong");
  }
  return box;
};
