(() => {
  "use strict";
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (!target) return;
    for (let node = target; node; node = node.parentElement) {
      if (node.localName === "details") node.open = true;
    }
    target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();

  const table = document.getElementById("case-table");
  const controls = document.getElementById("case-controls");
  if (!table || !controls) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const texts = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));
  const field = controls.querySelector("input");
  const state = controls.querySelector("select");
  const count = controls.querySelector("output");

  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = texts.get(row);
      const fits = words.every(word =>
        word.length > 1 && word[0] === "-" ? !text.includes(word.slice(1)) : text.includes(word));
      row.hidden = !(fits && row.cells[1].textContent.includes(state.value));
      if (!row.hidden) shown += 1;
    }
    count.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} shown`;
  };

  const sort = (column, head) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = row => row.cells[column].textContent;
    const number = text => (text === "–" ? Infinity : Number(text));
    const numeric = head.classList.contains("score");
    const order = [...rows].sort((a, b) => numeric
      ? number(key(a)) - number(key(b)) || 0
      : key(a).localeCompare(key(b), "en", { numeric: true }));
    if (down) order.reverse();
    body.append(...order);
  };

  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(column, head));
    head.append(button);
  });
  field.addEventListener("input", filter);
  state.addEventListener("change", filter);
  field.addEventListener("keydown", event => {
    const first = [...body.rows].find(row => !row.hidden);
    if (event.key === "Enter" && first) first.querySelector("a").click();
  });
  addEventListener("keydown", event => {
    const typing = event.target instanceof Element && event.target.closest("input, select, textarea");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    field.focus();
  });
  controls.hidden = false;
  filter();
})();
