(() => {
  "use strict";
  const find = id => document.getElementById(id);
  const make = (name, text = "", values = {}) =>
    Object.assign(document.createElement(name), { textContent: text }, values);
  const table = find("case-table");
  const given = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  let opened = null, origin = null, back = () => {}, restore = () => {};

  const reveal = place => {
    for (let node = place; node; node = node.parentElement) {
      if (node.localName === "details") node.open = true;
    }
  };

  // Opens what the address leads to. "#case=ID" is an answer, other addresses are places.
  const follow = () => {
    const key = given().get("case");
    restore();
    const id = key === null ? decodeURIComponent(location.hash.slice(1)) : `case-${key}`;
    const target = id && find(id);
    if (!target && id.startsWith("case-")) return back(id.slice(5), true);
    if (!target) return opened && back();
    reveal(target);
    const answer = target.classList.contains("in-full") && target.parentElement;
    if (!answer) return target.scrollIntoView();
    opened = { key: id.slice(5), answer, from: origin };
    origin = null;
    if (table) find("case-short").hidden = true;
    tools(target, id.slice(5));
    answer.scrollIntoView();
    answer.querySelector("summary").focus({ preventScroll: true });
  };

  const tools = (place, key) => {
    if (place.querySelector(".case-tools")) return;
    const line = make("p", "", { className: "case-tools" }), says = make("output");
    const copy = make("button", "Copy link", { type: "button" });
    copy.addEventListener("click", async () => {
      const link = `${location.href.split("#")[0]}#case=${encodeURIComponent(key)}`;
      try {
        await navigator.clipboard.writeText(link);
        says.textContent = "Copied.";
      } catch {
        says.textContent = link;
      }
    });
    line.append(copy);
    if (table) {
      const leave = make("button", "Back to the list (Esc)", { type: "button" });
      leave.addEventListener("click", () => back());
      line.append(" ", leave);
    }
    line.append(" ", says);
    place.prepend(line);
  };
  addEventListener("click", event => {
    origin = event.target.closest("main a[href^='#case']:not(#case-table a)");  // the address takes its focus
  }, { capture: true });
  addEventListener("hashchange", follow);
  if (!table) return follow();

  // The list: all rows are data, those in sight are drawn.
  const body = table.tBodies[0], box = table.parentElement, short = find("case-short");
  const heads = [...table.tHead.rows[0].cells];
  const names = heads.map(head => head.textContent);
  const scores = heads.flatMap((head, at) => head.classList.contains("score") ? [at] : []);
  const data = JSON.parse(find("case-data").content.textContent);
  const rows = data.map(([key, id, state, why, question, category, values, marks = ""], at) => {
    const cells = [id || key, state, why, question, category, ...values.split(" ").slice(0, scores.length)];
    return { at, key, cells, marks, text: cells.join(" \n").toLowerCase() };
  });
  const FEW = 6;
  const controls = find("case-controls");
  const [field, sorting] = controls.querySelectorAll("input, select");
  const chips = [...controls.querySelectorAll("[data-chip]")];
  const fits = (row, chip) => chip === "differs" ? row.marks.includes("d") : chip === "note" ? row.marks.includes("n")
    : row.cells[1] === chip || (chip === "fails" && row.cells[1] === "broke");
  const count = controls.querySelector("output"), choice = controls.querySelector("fieldset");
  const boxes = names.map((name, at) => make("input", "", { type: "checkbox", checked: at < FEW, disabled: !at }));
  const collator = new Intl.Collator("en", { numeric: true });
  const space = [0, 1].map(() => make("tr", "", { className: "space", ariaHidden: "true" }));
  const drawn = new Map();
  let shown = rows, current = 0, down = false, waiting = 0, state = "";

  const height = () => parseFloat(getComputedStyle(document.documentElement).fontSize)
    * parseFloat(getComputedStyle(table).getPropertyValue("--row"));

  const line = (row, place) => {
    const tr = make("tr"), head = make("th", "", { scope: "row" });
    head.append(make("a", row.cells[0], { href: `#case=${encodeURIComponent(row.key)}`, title: row.cells[0] }));
    tr.append(head);
    row.cells.slice(1).forEach((text, at) => {
      if (!boxes[at + 1].checked) return;
      const cell = make("td", text, { className: heads[at + 1].className, title: text });
      if (!at) cell.dataset.state = text;
      if (at > 3) cell.dataset.l = names[at + 1];
      tr.append(cell);
    });
    tr.ariaRowIndex = place + 2;
    tr.dataset.place = place;
    return tr;
  };

  const draw = () => {
    const size = height(), sight = Math.ceil(box.clientHeight / size);
    const from = Math.max(0, Math.floor(box.scrollTop / size) - 8);
    const until = Math.min(shown.length, from + sight + 16);
    for (const [place, tr] of drawn) {
      if (place < from || place >= until) {
        tr.remove();
        drawn.delete(place);
      }
    }
    space[0].style.height = `${from * size}px`;
    space[1].style.height = `${(shown.length - until) * size}px`;
    const stop = current >= from && current < until ? current : from;
    let next = space[0];
    for (let place = from; place < until; place += 1) {
      if (!drawn.has(place)) drawn.set(place, line(shown[place], place));
      const tr = drawn.get(place);
      if (next.nextSibling !== tr) next.after(tr);
      tr.querySelector("a").tabIndex = place === stop ? 0 : -1;
      next = tr;
    }
  };

  const anew = () => {
    drawn.clear();
    heads.forEach((head, at) => { head.hidden = !boxes[at].checked; });
    body.replaceChildren(...space);
    draw();
  };

  // Brings a row into sight and gives it the focus.
  const go = place => {
    reveal(box);
    if (!shown.length) return field.focus();
    current = Math.max(0, Math.min(place, shown.length - 1));
    const size = height(), top = current * size, room = box.clientHeight - table.tHead.offsetHeight - size;
    if (top < box.scrollTop || top > box.scrollTop + room) box.scrollTop = Math.max(0, top - room / 2);
    draw();
    drawn.get(current).querySelector("a").focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest" });
  };

  const arrange = () => {
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const chip of chips) chip.ariaPressed = chip.dataset.chip === state;
    shown = rows.filter(row => (!state || fits(row, state)) && wanted.every(word =>
      word.length > 1 && word[0] === "-" ? !row.text.includes(word.slice(1)) : row.text.includes(word)));
    const at = names.indexOf(sorting.value);
    const number = row => Number(row.cells[at].replaceAll(",", "")), sign = down ? -1 : 1;
    const compare = scores.includes(at)
      ? (a, b) => isNaN(number(a)) - isNaN(number(b)) || sign * (number(a) - number(b)) || 0
      : at === 1 ? (a, b) => sign * (a.at - b.at)  // the rows come by what became of them
      : (a, b) => sign * collator.compare(a.cells[at], b.cells[at]);
    if (at >= 0) shown.sort(compare);
    heads.forEach((head, one) => one === at
      ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
    count.textContent = `${shown.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} shown`;
    table.ariaRowCount = shown.length + 1;
    current = box.scrollTop = 0;
    anew();
  };

  // The address remembers what is chosen, so that a copy of it shows the same.
  const address = key => {
    const values = { case: key || "", q: field.value, state, sort: sorting.value && (down ? "-" : "") + sorting.value };
    if (boxes.some((one, at) => one.checked !== at < FEW)) values.columns = names.filter((_, at) => boxes[at].checked).join(" ");
    return new URLSearchParams(Object.entries(values).filter(([, value]) => value)).toString().replaceAll("%40", "@");
  };
  const remember = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => history.replaceState(null, "", `#${address(opened?.key) || "cases"}`), 250);
  };
  restore = (anyhow = false) => {
    const values = given();
    if (!anyhow && (!location.hash.includes("=") || address(values.get("case")) === location.hash.slice(1))) return;
    const sort = values.get("sort") || "", wanted = values.get("columns")?.split(" ");
    field.value = values.get("q") || "";
    state = chips.some(chip => chip.dataset.chip === values.get("state")) ? values.get("state") : "";
    down = sort[0] === "-";
    sorting.value = down ? sort.slice(1) : sort;
    boxes.forEach((one, at) => { one.checked = !at || (wanted ? wanted.includes(names[at]) : at < FEW); });
    arrange();
  };

  // Back to the row of the opened case; with ``tell`` a case that the page does not hold in full.
  back = (key = opened?.key, tell = false) => {
    const from = opened?.from;
    if (opened?.answer) opened.answer.open = false;
    const row = rows.find(one => one.key === key);
    short.hidden = !tell || !row;
    opened = tell && row ? { key } : null;
    if (opened) {
      const facts = row.cells.slice(4).map((text, at) => text && `${names[at + 4]} ${text}`).filter(Boolean);
      short.replaceChildren(make("h3", row.cells[0]), make("p", `${row.cells[1]}${row.cells[2] && `: ${row.cells[2]}`}`),
        make("p", row.cells[3]), make("p", facts.join(", "), { className: "small" }),
        make("p", "The page has no room for this case in full; browse_runs.py shows it.", { className: "small" }));
      tools(short, key);
      reveal(short);
      short.scrollIntoView({ block: "nearest" });
      return short.focus();
    }
    remember();
    if (from) from.focus();
    else if (row) go(shown.indexOf(row));
  };

  const sort = at => {
    down = sorting.value === names[at] && !down;
    sorting.value = names[at];
    arrange();
    remember();
  };
  heads.forEach((head, at) => {
    const button = make("button", "", { type: "button" });
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(at));
    head.append(button);
    sorting.append(make("option", names[at]));
    const label = make("label");
    label.append(boxes[at], ` ${names[at]}`);
    choice.append(label);
  });
  for (const chip of chips) {
    const many = rows.filter(row => fits(row, chip.dataset.chip)).length;
    chip.hidden = !many;
    chip.append(` ${many.toLocaleString("en")}`);
    chip.addEventListener("click", () => {
      state = state === chip.dataset.chip ? "" : chip.dataset.chip;
      arrange();
      remember();
    });
  }
  for (const one of [field, sorting]) {
    one.addEventListener("input", () => { down = down && one !== sorting; arrange(); remember(); });
  }
  choice.addEventListener("change", () => { anew(); remember(); });
  box.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(box);
  box.addEventListener("click", event => {
    const place = event.target.closest("td, th")?.querySelector("a") && event.target.closest("tr").dataset.place;
    if (!place || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    current = Number(place);
    const goal = `#${address(shown[current].key)}`;
    if (goal === location.hash) follow();
    else location.hash = goal;
  });
  box.addEventListener("focusin", event => {
    current = Number(event.target.closest("tr[data-place]")?.dataset.place ?? current);
  });
  box.addEventListener("keydown", event => {
    const page = Math.max(1, Math.floor(box.clientHeight / height()) - 2);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (!step || event.target.closest("button")) return;
    event.preventDefault();
    go(current + step);
  });
  field.addEventListener("keydown", event => {
    if (event.key === "ArrowDown") go(0);
    if (event.key === "Enter" && shown.length) drawn.get(current)?.querySelector("a").click();
  });
  addEventListener("keydown", event => {
    const typing = event.target instanceof Element && event.target.closest("input, select, textarea");
    if (event.key === "Escape" && opened) back();
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    reveal(field);
    field.focus();
  });
  controls.hidden = false;
  box.removeAttribute("tabindex");
  restore(true);
  follow();
})();
