// The theme that somebody chose in the menu, instead of the system's.  Streamlit asks by `matchMedia` alone.
(() => {
  const key = "concord-theme"; // "light", "dark", or nothing for the system's
  const query = "(prefers-color-scheme: dark)";
  const ask = window.matchMedia.bind(window);
  const system = ask(query);
  const answer = new EventTarget();
  const chosen = () => localStorage.getItem(key) ?? "system";
  const matches = () => (chosen() === "system" ? system.matches : chosen() === "dark");
  const paint = () => { document.documentElement.style.colorScheme = matches() ? "dark" : "light"; }; // dialogs too
  const tell = () => {
    paint();
    answer.dispatchEvent(Object.assign(new Event("change"), { matches: matches(), media: query }));
  };
  Object.defineProperties(answer, { matches: { get: matches }, media: { value: query } });
  window.matchMedia = (asked) => (asked === query ? answer : ask(asked));
  paint();
  system.addEventListener("change", tell);
  addEventListener("storage", (event) => { if (event.key === key) tell(); }); // chosen in another tab
  window.concordTheme = {
    chosen,
    choose(theme) {
      if (theme === "system") localStorage.removeItem(key);
      else localStorage.setItem(key, theme);
      tell();
    },
  };
})();

// Around every drawing of a screen: the page keeps its height while it is drawn anew, and whoever uses the keys keeps
// their place where the widget they pressed is taken away.
(() => {
  const settled = 300; // ms in which figures find their height once the script rests
  const answered = 10_000; // ms in which a server that is asked for another screen begins to draw it
  let releasing = 0;
  let held = null; // what had the focus last
  let pressed = ""; // class of the widget that had the focus last, while keys are used
  let words = ""; // and what its button said
  let byKeys = false;
  let asking = false; // a dialog is open
  let toTop = false; // what was pressed shows its result at the head of the page
  let path = location.pathname; // another screen begins at its head
  const find = (id) => document.querySelector(`[data-testid=${id}]`);
  const alone = /[?&](view=bare|task=)/.test(location.search); // a screen without menu
  document.documentElement.toggleAttribute("data-menu-to-come", !alone); // frame.css keeps its room until it is there
  const rests = () => find("stApp")?.getAttribute("data-test-script-state") === "notRunning";

  const hold = () => {
    clearTimeout(releasing);
    const page = find("stMainBlockContainer");
    if (page && !page.style.minHeight) page.style.minHeight = `${page.offsetHeight}px`;
  };
  const release = () => {
    const page = find("stMainBlockContainer");
    if (page && rests()) page.style.minHeight = "";
  };
  const refocus = () => {
    if (find("stMain")?.closest("[inert]")) return void setTimeout(refocus, 100); // behind a dialog
    if (!byKeys || !pressed || document.activeElement !== document.body) return;
    const same = (button) => words && button.textContent === words && !button.disabled;
    const again = document.querySelector(`.${CSS.escape(pressed)} :is(button, input, textarea, a):enabled`)
      ?? [...(find("stMain")?.querySelectorAll("button") ?? [])].find(same);
    find("stMain")?.toggleAttribute("data-given", !again);
    (again ?? find("stMain"))?.focus({ preventScroll: true });
  };
  new MutationObserver(() => {
    toTop ||= path !== location.pathname;
    path = location.pathname;
    if (!rests()) return hold();
    document.documentElement.removeAttribute("data-menu-to-come");
    clearTimeout(releasing);
    releasing = setTimeout(release, settled);
    requestAnimationFrame(refocus);
    if (toTop) find("stMain")?.scrollTo({ top: 0 });
    toTop = false;
  }).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-test-script-state"] });
  // A placeholder of a figure gets the figure's shape, which pages/ui/charts.py writes into a key.
  const shape = () => {
    for (const place of document.querySelectorAll('[class*="st-key-shape_"] [data-testid=stSkeleton]')) {
      const [, height] = place.closest('[class*="st-key-shape_"]').className.match(/st-key-shape_(\d+)_/);
      Object.assign(place.style, { height: "auto", aspectRatio: `1000 / ${height}` });
    }
  };
  // What is gone may be taken away only after the script has come to rest.
  new MutationObserver(() => {
    shape();
    const dialog = find("stDialog");
    if (dialog && document.activeElement?.getAttribute("role") === "dialog") dialog.querySelector("input:enabled")?.focus();
    if (asking && !dialog) setTimeout(refocus, 100);
    asking = !!dialog;
    if (!held || held.isConnected || !rests()) return;
    held = null;
    if (!pressed.includes("form_label_number_")) requestAnimationFrame(refocus); // label_number.js sees to its own
  }).observe(document, { subtree: true, childList: true });

  // Streamlit empties the page when a link to another screen is followed, before its script is said to run.
  const follow = () => {
    hold();
    releasing = setTimeout(release, answered);
  };
  document.addEventListener("click", (event) => {
    toTop ||= event.target instanceof Element && !!event.target.closest('[class*="st-key-shown_above"] button');
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || link?.target === "_blank";
    if (link && !elsewhere && link.origin === location.origin && link.pathname !== location.pathname) follow();
  }, true);
  addEventListener("popstate", follow, true);
  // A screen that completes its own address takes no step, so that Back leads to the screen before.
  const { pushState, replaceState } = history;
  history.pushState = (state, title, url) => {
    const [from, to] = [new URL(location.href), new URL(url ?? "", location.href)];
    const more = from.pathname === to.pathname && [...from.searchParams].every(([id, value]) => to.searchParams.get(id) === value);
    (more ? replaceState : pushState).call(history, state, title, url);
    // The observer of the script's state doesn't see a screen that is drawn in an instant.
    if (from.pathname !== to.pathname) find("stMain")?.scrollTo({ top: 0 });
  };

  document.addEventListener("focusin", ({ target }) => {
    held = target;
    const widget = target.closest('[class*="st-key-"]');
    pressed = [...(widget?.classList ?? [])].find((name) => name.startsWith("st-key-")) ?? "main";
    if (target !== find("stMain")) words = target.closest("button")?.textContent ?? "";
  });
  // Who left a text field on their own, as with Esc, means the next key for the page.
  document.addEventListener("focusout", ({ target, relatedTarget }) => {
    if (relatedTarget === null && target.isConnected && target.matches("input, textarea")) pressed = "main";
  });
  // Tab leaves a table, whose cells the arrows reach; its own use of Tab would hold the focus within it.
  addEventListener("keydown", (event) => {
    byKeys = true;
    const inTable = event.target instanceof Element && event.target.closest("[data-testid=stDataFrame]");
    if (event.key === "Tab") find("stMain")?.removeAttribute("data-given");
    if (event.key === "Tab" && inTable) event.stopPropagation();
  }, true);
  // A switch that has the focus takes Space alone; every other key is the page's, which asks who was typed into.
  for (const kind of ["keydown", "keyup"]) addEventListener(kind, (event) => {
    const { target, key, code } = event;
    if (!event.isTrusted || event.ctrlKey || event.metaKey || event.altKey || key === " " || key.length > 1) return;
    if (!(target instanceof Element && target.matches("input[type=checkbox]"))) return;
    find("stMain")?.dispatchEvent(new KeyboardEvent(kind, { key, code, bubbles: true, cancelable: true }));
  }, true);
  document.addEventListener("pointerdown", () => { byKeys = false; }, true);

  // A page without its connection looks much as ever, or stays empty: it says so, and whose part it is.
  const patience = { lost: 1_500, never: 8_000 }; // ms
  const says = {
    lost: "Concord lost the connection and is reconnecting. What you saved is safe. Continue when this note disappears.",
    never: "Concord can't connect yet. If this note stays, a proxy may be blocking WebSockets. See “Teams and hosts” in "
      + "the README.",
  };
  const note = document.createElement("p");
  note.className = "concord-away";
  note.setAttribute("role", "alert");
  let [state, seen] = ["never", performance.now()];
  setInterval(() => {
    if (document.querySelector("[data-test-connection-state=CONNECTED]")) {
      [state, seen] = ["lost", performance.now()];
      note.remove();
    } else if (!note.isConnected && performance.now() - seen > patience[state]) {
      note.textContent = says[state];
      document.body.append(note);
    }
  }, 500);
})();
