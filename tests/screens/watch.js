// From the first moment on: is the heading there, and how high is the page, at every frame.
window.frames_seen = [];
const note = () => {
  const heading = document.querySelector("[data-testid=stMain] h1");
  const body = document.querySelector("[data-testid=stMainBlockContainer]");
  const app = document.querySelector("[data-testid=stApp]");
  window.frames_seen.push({
    at: performance.now(),
    heading: heading ? heading.textContent : "",
    height: body ? body.getBoundingClientRect().height : 0,
    rests: app?.getAttribute("data-test-script-state") === "notRunning",
  });
  requestAnimationFrame(note);
};
requestAnimationFrame(note);
