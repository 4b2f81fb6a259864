// Keys of the labelling desk that Streamlit's own shortcuts cannot be, and words marked in the judged text.
//
// Streamlit calls the function below anew whenever `data` changes, and what it returned last when the element goes.

const TEXT = ".st-key-form_label_text [data-testid=stText]";
const DESK = ".st-key-form_label_desk";
const FIELDS = "input:not([type=checkbox]):not([type=radio]), textarea";
const COMMENT = `${DESK} input[aria-label=Comment]`;
const MARKS = "concord-marks";
const NUMBER = "[class*='st-key-form_label_number_']";
const HEADER = 76; // px at the top of a phone that lie under Streamlit's own bar; the same in label_keys.css
const RECENT = 4000; // ms for which a selection counts after a tap on the button has taken it away
const ISOLATES = /[\u2066-\u2069]/g; // drawn around lines that run from right to left; they are no part of the text

const named = (key) => document.querySelector(`.st-key-${key.trim().replaceAll(/[^a-zA-Z0-9_-]/g, "-")} button`);
const letters = (text) => Array.from(text).length;

let off = null; // ends what the call before has begun: that of another item, or of this one with other marks
let item = null; // the key of a button of the item on the screen
let last = null; // what was selected last: {words, near, at}

function selected() {
  const root = document.querySelector(TEXT);
  const selection = document.getSelection();
  if (root === null || selection.rangeCount === 0 || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  if (!root.contains(range.startContainer) || !root.contains(range.endContainer)) return null;
  const before = document.createRange();
  before.setStart(root, 0);
  before.setEnd(range.startContainer, range.startOffset);
  const raw = range.toString().replaceAll(ISOLATES, "");
  const words = raw.trim();
  const near = letters(before.toString().replaceAll(ISOLATES, "")) + letters(raw) - letters(raw.trimStart());
  return words === "" ? null : { words, near, at: Date.now() };
}

/** The text below `root`, and where in it a character stands: [node, offset], null beyond its end. */
function read(root) {
  const nodes = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) nodes.push(walker.currentNode);
  const place = (offset) => {
    for (const node of nodes) {
      if (offset <= node.length) return [node, offset];
      offset -= node.length;
    }
    return null;
  };
  return { text: nodes.map((node) => node.data).join(""), place };
}

// Words chosen by keys: the text takes the focus, arrows go from word to word, with Shift more words are taken in.
let first = 0;
let chosen = 0;

function choose(root, to, more) {
  const { text, place } = read(root);
  const words = [...text.matchAll(/\S+/g)];
  if (words.length === 0) return;
  chosen = Math.max(0, Math.min(words.length - 1, to));
  first = more ? Math.min(first, words.length - 1) : chosen;
  const [from, last] = [words[Math.min(first, chosen)], words[Math.max(first, chosen)]];
  const selection = document.getSelection();
  selection.setBaseAndExtent(...place(from.index), ...place(last.index + last[0].length));
  const at = selection.getRangeAt(0).getBoundingClientRect();
  for (let box = root.parentElement; box !== null; box = box.parentElement) {
    if (box.scrollHeight <= box.clientHeight || getComputedStyle(box).overflowY === "visible") continue;
    const { top, bottom } = box.getBoundingClientRect();
    box.scrollTop += Math.max(0, at.bottom + 20 - bottom) - Math.max(0, top + 60 - at.top);
  }
}

function readable() {
  const root = document.querySelector(TEXT);
  if (root === null || root.tabIndex === 0) return;
  root.tabIndex = 0;
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Judged text. Arrow keys select a word, Shift with arrow keys selects more words, and H marks them.");
}

function paint(spans) {
  const root = document.querySelector(TEXT);
  if (globalThis.Highlight === undefined || root === null) return;
  const { text, place } = read(root);
  const ranges = [];
  for (const { start, words } of spans) {
    let at = -1;
    for (let next = text.indexOf(words); next >= 0; next = text.indexOf(words, next + 1))
      if (at < 0 || Math.abs(letters(text.slice(0, next)) - start) < Math.abs(letters(text.slice(0, at)) - start)) at = next;
    const ends = at < 0 ? [] : [place(at), place(at + words.length)];
    if (ends.length === 2 && ends[0] !== null && ends[1] !== null) {
      const range = document.createRange();
      range.setStart(...ends[0]);
      range.setEnd(...ends[1]);
      ranges.push(range);
    }
  }
  CSS.highlights.set(MARKS, new Highlight(...ranges));
}

export default function ({ data, setTriggerValue, parentElement }) {
  off?.abort();
  const own = (off = new AbortController());
  const on = (where, what, act) => where.addEventListener(what, act, { capture: true, signal: own.signal });

  // The next item begins with its text, however far down the rater has read in the one before.
  const judged = document.querySelector(".st-key-form_label_text");
  if (item !== null && item !== data.next && judged?.getBoundingClientRect().top < HEADER) judged.scrollIntoView();
  item = data.next;

  const button = parentElement.querySelector("button");
  const mark = () => {
    const found = selected() ?? (last !== null && Date.now() - last.at < RECENT ? last : null);
    setTriggerValue("selected", found === null ? { words: "", near: 0 } : { words: found.words, near: found.near });
    last = null;
    document.getSelection().removeAllRanges();
  };
  on(button, "click", mark);
  on(document, "selectionchange", () => {
    last = selected() ?? last;
  });

  // A switch that was pressed would keep the focus, and no key works from within a field.
  on(document, "pointerup", () =>
    setTimeout(() => document.activeElement?.matches("input[type=checkbox]") && document.activeElement.blur(), 50),
  );

  // An arrow moves the cursor in what is typed, and goes to another item where there is nowhere left to move.
  let began = null;
  on(document, "focusin", (event) => {
    if (event.target.matches(FIELDS)) began = event.target.value;
  });
  const leaves = (field, key) => {
    if (field.closest(NUMBER) !== null && field.value !== began) return false; // typed, and not kept yet
    const end = key === "ArrowLeft" ? 0 : field.value.length;
    return field.selectionStart === end && field.selectionEnd === end;
  };
  const press = (field, key) => {
    field?.blur(); // first what was typed goes to the server, then the press
    named(key)?.click();
  };
  on(window, "keydown", (event) => {
    const plain = !event.altKey && !event.ctrlKey && !event.metaKey;
    const field = event.target instanceof Element ? event.target.closest(FIELDS) : null;
    const stop = () => {
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    if (document.querySelector("[role=dialog]") !== null && field === null) return;
    const done = event.ctrlKey || event.metaKey || (field?.matches(COMMENT) && !event.isComposing);
    if (event.key === "Enter" && done) {
      if (field !== null && (field.closest(DESK) === null || field.closest(NUMBER) !== null)) return;
      stop();
      press(field, data.next);
    } else if (field === null) {
      const root = document.querySelector(TEXT);
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (root !== null && event.target === root && plain && step !== undefined) {
        stop();
        choose(root, selected() === null && !event.shiftKey ? chosen : chosen + step, event.shiftKey);
      } else if (root !== null && event.target === root && event.key === "Escape") {
        document.getSelection().removeAllRanges();
        root.blur();
      } else if (event.key.toLowerCase() === "c" && plain && !event.shiftKey) {
        stop();
        document.querySelector(COMMENT)?.focus();
      } else if (event.key === "?" && plain) {
        stop();
        named(data.sheet)?.click();
      } else if (event.key.toLowerCase() === "h" && plain && !event.shiftKey) {
        stop();
        if (root !== null && selected() === null && event.target !== root) {
          root.focus();
          choose(root, 0, false);
        } else mark();
      }
    } else if (field.closest(DESK) !== null && plain && !event.repeat) {
      if (event.key === "Escape") field.blur();
      else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !event.shiftKey && leaves(field, event.key)) {
        stop();
        press(field, event.key === "ArrowLeft" ? data.left : data.right);
      }
    }
  });

  const look = getComputedStyle(parentElement);
  for (const name of ["background-color", "border-color", "text-color"])
    document.documentElement.style.setProperty(`--label-${name}`, look.getPropertyValue(`--st-${name}`));
  const draw = () => {
    readable();
    paint(data.spans);
  };
  for (const wait of [0, 100, 400, 1000]) setTimeout(() => own.signal.aborted || draw(), wait);
  return () => {
    own.abort();
    if (own === off) globalThis.CSS?.highlights?.delete(MARKS);
  };
}
