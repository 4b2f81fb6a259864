// Cells of a map, each a place to press.  All that came from the server is set as text.  A press on a cell picks it, as
// Enter and Space do; the arrows move over the map.

const WRITTEN = 20, NAMED = 40; // layers at most for numbers in the cells, and for all to be named
const kept = new WeakMap(); // place on the page → what was said

const element = (name, properties = {}, children = []) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
const digits = (value, n) => value.toFixed(n).replace(/^-(?=[0.]*$)/, "").replace("-", "−");

export default function ({ data, parentElement, setTriggerValue }) {
  const place = parentElement.querySelector(".concord-heat");
  const said = JSON.stringify(data);
  if (kept.get(place) === said) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.at : undefined;
  kept.set(place, said);
  const has = (cells, i, j) => cells.some(([layer, token]) => layer === i && token === j);
  const first = data.marked[0] ?? data.chosen[0];
  const step = Math.ceil(data.layers.length / NAMED);

  const cell = (value, i, j) => {
    const figure = value === null ? "undefined: nothing varies here" : `validation ${digits(value, 3)}`;
    const made = element("td", {
      role: "gridcell",
      tabIndex: i === first[0] && j === first[1] ? 0 : -1,
      title: `layer ${data.layers[i]}, token ${data.tokens[j]}: ${figure}`,
      textContent: value === null || data.layers.length > WRITTEN ? "" : digits(value, 2),
      ariaSelected: String(has(data.marked, i, j)),
    });
    made.ariaLabel = made.title;
    made.dataset.at = `${i} ${j}`;
    for (const name of ["chosen", "used", "marked"]) made.classList.toggle(name, has(data[name], i, j));
    if (value === null) made.classList.add("undefined");
    else {
      made.classList.add(value < 0 ? "below" : "above");
      made.style.setProperty("--share", `${Math.round((100 * Math.abs(value)) / data.limit)}%`);
    }
    return made;
  };
  const heading = (name, i) =>
    element("th", { scope: "col", textContent: i % step ? "" : name, ariaLabel: `layer ${name}` });
  const table = element("table", { role: "grid", ariaLabel: data.alt }, [
    element("thead", {}, [element("tr", {}, [element("th", { textContent: "token" }), ...data.layers.map(heading)])]),
    element("tbody", {}, data.values.map((row, j) =>
      element("tr", {}, [
        element("th", { scope: "row", textContent: data.tokens[j] }),
        ...row.map((value, i) => cell(value, i, j)),
      ]))),
  ]);
  table.className = data.layers.length > WRITTEN ? "many" : "";
  const limit = digits(data.limit, 2);
  place.replaceChildren(
    element("div", { className: "across", textContent: data.across }),
    element("div", { className: "frame" }, [table]),
    element("div", { className: "legend" }, [
      element("span", { textContent: `−${limit}` }),
      element("i", { ariaHidden: "true" }),
      element("span", { textContent: limit }),
      element("span", { textContent: data.measure }),
    ]),
  );
  if (focused) place.querySelector(`[data-at="${focused}"]`)?.focus({ preventScroll: true });

  const pick = (target) => setTriggerValue("picked", target.dataset.at.split(" ").map(Number));
  place.onclick = (event) => { const target = event.target.closest("td"); if (target) pick(target); };
  place.onkeydown = (event) => {
    const target = event.target.closest("td");
    if (!target || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    if (event.key === "Enter" || event.key === " ") pick(target);
    else if (event.key in steps) {
      const [i, j] = target.dataset.at.split(" ").map(Number);
      const next = place.querySelector(`[data-at="${i + steps[event.key][0]} ${j + steps[event.key][1]}"]`);
      if (next) {
        target.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
}
