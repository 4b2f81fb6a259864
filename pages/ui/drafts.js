// Keeps what is typed into one of Streamlit's text areas before it is saved: once typing rests, the text goes to the
// server, which keeps it as its author's draft and says so.  Until it has said so, this browser holds the text as well.
//
// Streamlit calls the function below anew whenever `data` changes, and what it returned last when the element goes.

const REST = 1000; // ms without a key after which the text is sent
const LONGEST = 5000; // ms of typing without a rest after which it is sent all the same
const AGAIN = 3000; // ms without an answer after which it is sent again
const TICK = 500;
const watches = new Map();

class Watch {
  constructor() {
    this.text = null; // as typed last; null: nothing was typed since this began
    this.sent = null; // as sent last
    this.n = 0; // the number it was sent under
    this.sentAt = 0;
    this.typedAt = 0;
    this.waiting = false; // for the server to say that it has kept what was sent
    this.online = false; // whether there was a connection when it was sent
    this.late = false; // whether it had to be sent again
    this.restored = false;
    this.off = new AbortController();
    const on = (where, what, act) => where.addEventListener(what, act, { capture: true, signal: this.off.signal });
    on(document, "input", (event) => this.mine(event) && this.typed(event.target.value));
    // Streamlit sends what is said in the same moment as one message, which would draw this element alone: its own first.
    on(document, "focusout", (event) => this.mine(event) && setTimeout(() => this.flush(), 50));
    on(document, "keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && this.mine(event)) this.flush(); // sends a form
    });
    on(document, "visibilitychange", () => document.hidden && this.flush());
    on(window, "pagehide", () => this.flush());
    this.timer = setInterval(() => this.tick(), TICK);
  }

  area() {
    return document.querySelector(`${this.where} textarea`);
  }

  mine(event) {
    return event.target instanceof HTMLTextAreaElement && event.target.closest(this.where) !== null;
  }

  take({ data, setStateValue, parentElement }) {
    this.data = data;
    this.where = `.st-key-${data.area.trim().replaceAll(/[^a-zA-Z0-9_-]/g, "-")}`;
    this.send = setStateValue;
    if (this.line?.parentNode !== parentElement) {
      this.line = document.createElement("div");
      this.line.setAttribute("role", "status");
      this.line.style.cssText =
        "min-height:1.4em;font:0.82rem/1.4 var(--st-font);color:var(--st-text-color);opacity:.75";
      parentElement.appendChild(this.line);
    }
    if (this.waiting && data.heard === this.n) {
      this.waiting = false;
      if (this.sent !== this.text) this.hold();
      else if (!data.problem) this.forget();
    }
    this.show();
  }

  typed(text) {
    if (this.text === null || this.text === this.sent) this.typedAt = Date.now();
    this.text = text;
    this.hold();
    clearTimeout(this.rest);
    if (Date.now() - this.typedAt > LONGEST) this.flush();
    else this.rest = setTimeout(() => this.flush(), REST);
  }

  flush() {
    clearTimeout(this.rest);
    if (this.text !== null && this.text !== this.sent) this.post();
  }

  post() {
    this.n = Math.max(Date.now(), this.n + 1);
    this.sent = this.text;
    this.sentAt = Date.now();
    this.waiting = true;
    this.online = document.querySelector("[data-test-connection-state=CONNECTED]") !== null;
    this.send("draft", { n: this.n, text: this.sent });
  }

  tick() {
    if (!this.restored && this.area()) this.restore();
    if (this.waiting && Date.now() - this.sentAt > AGAIN) {
      this.post();
      this.late = true;
      this.show();
    }
  }

  show() {
    if (!this.waiting) this.late = false;
    const { kept, problem, until } = this.data;
    const time = kept === null ? "" : new Date(1000 * kept).toTimeString().slice(0, 5);
    const said = kept === null ? "" : `Draft saved at ${time}, ${until}`;
    this.line.textContent = problem
      ? `Draft not saved: ${problem}`
      : this.late
        ? "Draft not saved yet: the server isn't responding. This browser keeps your text until the server responds."
        : said;
  }

  // ── what this browser holds while the server has not said that it has kept it ──

  place() {
    return `concord draft ${this.data.place}`;
  }

  hold() {
    try {
      localStorage.setItem(this.place(), JSON.stringify({ text: this.text, after: this.data.kept }));
    } catch {
      return; // no room, or switched off: the server's copy has to do
    }
  }

  forget() {
    try {
      localStorage.removeItem(this.place());
    } catch {
      return;
    }
  }

  // A text that never reached the server goes back into its area, unless a later one did reach it.
  restore() {
    this.restored = true;
    let held = null;
    try {
      held = JSON.parse(localStorage.getItem(this.place()));
    } catch {
      return;
    }
    if (held === null || this.text !== null) return;
    if (typeof held.text !== "string" || held.after !== this.data.kept) {
      this.forget();
      return;
    }
    const area = this.area();
    if (held.text !== area.value)
      Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, held.text); // past React
    area.dispatchEvent(new Event("input", { bubbles: true })); // tells Streamlit, and `typed`, which sends it
  }

  end() {
    this.off.abort();
    clearInterval(this.timer);
    clearTimeout(this.rest);
    const arrived = this.sent === this.text && this.online && !this.late; // the server draws anew: it was there
    if (this.text !== null && arrived) this.forget();
  }
}

export default function (component) {
  const { key } = component;
  if (!watches.has(key)) watches.set(key, new Watch());
  watches.get(key).take(component);
  return () => {
    watches.get(key)?.end();
    watches.delete(key);
  };
}
