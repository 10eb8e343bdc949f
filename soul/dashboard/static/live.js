// Looks again whenever the home has changed, and puts the new page in place of the old; forms and links work without it.
/** What is replaced: all of the page, or the part of it that is marked. */
const main = document.querySelector("[data-live]") ?? document.querySelector("main");
let changes;

async function look() {
  const answer = await fetch(location.pathname + location.search, { cache: "no-store" });
  if (!answer.ok || isBusy()) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector("[data-live]") ?? page.querySelector("main");
  if (fresh.innerHTML === main.innerHTML) return;
  const open = [...main.querySelectorAll("details")].map((one) => one.open);
  main.replaceChildren(...fresh.childNodes);
  main.querySelectorAll("details").forEach((one, index) => { one.open = open[index] ?? one.open; });
}

/** Whether somebody is at something in the page that a new one would take away. */
function isBusy() {
  const at = document.activeElement;
  const isWriting = [...main.querySelectorAll("textarea")].some((one) => one.value !== one.defaultValue);
  const hasTicked = main.querySelector("input:checked") !== null;
  const isAtControl = main.contains(at) && at.matches("a, button, summary, input, select, textarea");
  return isWriting || hasTicked || isAtControl;
}

/** Listens only while the page is in view: a browser has few connections for all of its tabs. */
function listen() {
  changes?.close();
  if (document.hidden) return;
  changes = new EventSource("/events");
  changes.addEventListener("open", look);
  changes.addEventListener("changed", look);
}

document.addEventListener("visibilitychange", listen);
listen();
