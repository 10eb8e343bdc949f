// Why a resident wrote a post: the story, told on request below it.

import { why } from "./ask.js";
import { el, shown } from "./dom.js";

let number = 0;

// The button, and the panel that it opens.
export function disclosure(post, name) {
  const id = `why-${(number += 1)}`;
  const panel = el("div", { class: "story", id, role: "region", "aria-label": `Why, told of ${name}`, "aria-live": "polite", hidden: true });
  const button = el("button", { type: "button", "aria-expanded": "false", "aria-controls": id,
    "aria-label": `Why did ${name} write this?`, onclick: async () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      panel.hidden = !open;
      if (open) panel.replaceChildren(...told(await why(post.author.handle, post.uri)));
    } }, "Why?");
  return { button, panel };
}

// One sentence for people; every step of it on request.
function told({ title, steps, ending, lead, error }) {
  if (error) return [el("p", {}, error)];
  return [
    el("h4", {}, title),
    el("p", { class: "lead" }, lead || steps.at(-1)?.text || ""),
    ending ? el("p", { class: "ending" }, ending) : null,
    el("details", { class: "steps" }, el("summary", {}, `Every step (${steps.length})`),
      el("ol", {}, ...steps.map((one) => shown(() => step(one), "li")))),
  ].filter(Boolean);
}

function step({ at, text, details }) {
  const time = at ? el("time", { datetime: at }, new Date(at).toLocaleTimeString(undefined, { hour12: false })) : el("span");
  return el("li", {}, time, el("div", {}, el("p", {}, text), ...details.map((detail) => el("p", { class: "detail" }, detail))));
}
