// Rows of a small table.  All that came from the server is set as text.  A press on a row picks it, as Enter and Space
// do; the arrows move through the rows; a press on a heading sorts, a second turns it round, a third takes it back.

const kept = new WeakMap(); // place on the page → {said, sort}

const number = (value) => typeof value === "number";
const words = (value, column, undefined_) => {
  if (value === null) return undefined_;
  if (!number(value)) return value;
  const digits = column.digits === null
    ? { maximumFractionDigits: 3 }
    : { minimumFractionDigits: column.digits, maximumFractionDigits: column.digits };
  const sign = column.signed && value > 0 ? "+" : "";
  return `${sign}${value.toLocaleString("en", digits).replace("-", "−")}${column.unit}`;
};

function order(rows, sort) {
  const places = rows.map((_, place) => place);
  if (sort === null) return places;
  const value = (place) => rows[place][sort.column];
  const compare = (a, b) => (number(a) && number(b) ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
  return places.sort((a, b) => { // what is missing stands last, either way
    if (value(a) === null || value(b) === null) return (value(a) === null) - (value(b) === null) || a - b;
    return sort.way * compare(value(a), value(b)) || a - b;
  });
}

const element = (name, properties = {}, children = []) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

export default function ({ data, parentElement, setTriggerValue }) {
  const place = parentElement.querySelector(".concord-grid");
  const before = kept.get(place) ?? { said: "", sort: null };
  const said = JSON.stringify(data);
  if (before.said === said) return;
  const here = { said, sort: before.sort };
  kept.set(place, here);
  const numeric = data.columns.map((_, c) => data.rows.some((row) => number(row[c])));
  const pick = (row) => {
    for (const other of place.querySelectorAll("tbody tr")) other.ariaSelected = String(other === row);
    if (data.ids.length) setTriggerValue("picked", row.dataset.id);
  };

  const heading = (column, c) => {
    const button = element("button", { type: "button", textContent: column.heading });
    if (column.help) button.title = column.help;
    button.onclick = () => {
      const { sort } = here;
      const first = numeric[c] ? -1 : 1;
      if (sort?.column !== c) here.sort = { column: c, way: first };
      else here.sort = sort.way === first ? { column: c, way: -first } : null;
      draw();
      place.querySelectorAll("th button")[c].focus();
    };
    const cell = element("th", { scope: "col", className: numeric[c] ? "number" : "" }, [button]);
    if (here.sort?.column === c) cell.ariaSort = here.sort.way > 0 ? "ascending" : "descending";
    return cell;
  };

  const line = (k) => {
    const row = element("tr", {}, data.rows[k].map((value, c) => {
      const text = words(value, data.columns[c], data.undefined);
      const cell = element("td", { className: numeric[c] ? "number" : "" });
      cell.style.setProperty("--most", `${data.columns[c].width}px`);
      if (text.length > 30) cell.title = text;
      cell.append(data.tall ? element("div", { textContent: text }) : text);
      return cell;
    }));
    if (data.ids.length) {
      row.dataset.id = data.ids[k];
      row.ariaSelected = String(data.ids[k] === data.chosen);
      row.tabIndex = -1;
      row.onclick = () => { if (!String(getSelection())) pick(row); };
    }
    return row;
  };

  const draw = () => {
    const focused = place.contains(document.activeElement) ? document.activeElement.dataset.id : undefined;
    const { scrollTop, scrollLeft } = place;
    const rows = order(data.rows, here.sort).map(line);
    const table = element("table", { ariaLabel: data.alt }, [
      element("thead", {}, [element("tr", {}, data.columns.map(heading))]),
      element("tbody", {}, rows),
    ]);
    if (data.ids.length) table.role = "grid";
    table.className = data.tall ? "tall" : "";
    table.style.setProperty("--row", data.tall ? "76px" : "36px");
    place.replaceChildren(table);
    place.scrollTo(scrollLeft, scrollTop);
    const chosen = rows.find((row) => row.ariaSelected === "true");
    if (data.ids.length && rows.length) (chosen ?? rows[0]).tabIndex = 0;
    if (chosen && chosen.offsetTop + chosen.offsetHeight > place.clientHeight && !before.said)
      place.scrollTop = chosen.offsetTop - place.clientHeight / 2;
    if (focused !== undefined) rows.find((row) => row.dataset.id === focused)?.focus({ preventScroll: true });
  };

  place.onkeydown = (event) => {
    const row = event.target.closest("tbody tr[tabindex]");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = [...place.querySelectorAll("tbody tr")];
    const steps = { ArrowDown: 1, ArrowUp: -1, Home: -rows.length, End: rows.length };
    if (event.key === "Enter" || event.key === " ") pick(row);
    else if (event.key in steps) {
      const next = rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(row) + steps[event.key]))];
      for (const other of rows) other.tabIndex = other === next ? 0 : -1;
      next.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  draw();
}
