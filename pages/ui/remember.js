// Writes one cookie of this browser, or takes it away where the value is empty.  The value is only ever kept, encoded.
export default function ({ data, parentElement }) {
  const { name, value, seconds, leaving } = data;
  const write = () => {
    const age = value ? seconds : 0;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `${name}=${encodeURIComponent(value)}; Path=/; Max-Age=${age}; SameSite=Strict${secure}`;
  };
  const frame = parentElement.closest("[data-testid=stElementContainer]");
  if (frame) frame.style.display = "none"; // nothing to see, so no gap in the page either
  write();
  if (leaving) window.addEventListener("pagehide", write); // the time counts from here, and the last tab to leave wins
  return () => {
    window.removeEventListener("pagehide", write);
    if (frame) frame.style.display = "";
  };
}
