// The box in which "you" write: a new post, a reply, or a word in the room.

import { send as ask } from "./ask.js";
import { el } from "./dom.js";

const MAX = 300;
const LOST = "The town cannot be reached. Your words are still here; try again in a moment.";
const segments = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const length = (text) => [...segments.segment(text)].length;
let number = 0;

// `label` names the box, `hint` stands in it while it is empty; `names` gives whom to mention; `deliver` sends the text
// and answers "" or why not; `done` is called after sending, `cancel` (if given) offers a way out; with `enterSends` the
// Enter key sends and Shift+Enter begins a line; with `open` it may address nobody.
export function box({ label, hint = "", names, deliver, button, done, cancel, max = MAX, enterSends = false, open = false }) {
  const id = `box-${(number += 1)}`;
  const field = el("textarea", { id, rows: 2, placeholder: hint, "aria-describedby": `${id}-count` });
  const count = el("span", { class: "count", id: `${id}-count` }, "");
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const send = el("button", { class: "main-button", type: "submit", disabled: true }, button);
  const chips = el("div", { class: "names", role: "group", "aria-label": "Mention a resident" });
  const form = el("form", { class: "box" },
    el("label", { for: id }, label),
    field,
    el("div", { class: "under" }, chips, el("div", { class: "send" }, count,
      cancel ? el("button", { class: "plain-button", type: "button", onclick: cancel }, "Cancel") : null, send)),
    problem);

  // The name being typed: "@ma" before the caret.
  const typed = () => /(?:^|\s)@([\w.-]*)$/.exec(field.value.slice(0, field.selectionStart));

  function mention(handle) {
    const before = field.value.slice(0, field.selectionStart).replace(/(^|\s)@[\w.-]*$/, "$1");
    const after = field.value.slice(field.selectionStart);
    const start = `${before}${before && !/\s$/.test(before) ? " " : ""}@${handle} `;
    field.value = start + after.replace(/^\s+/, "");
    field.focus();
    field.setSelectionRange(start.length, start.length);
    refresh();
  }

  function refresh() {
    const used = length(field.value.trim());
    count.textContent = used > max - 60 ? `${max - used} left` : "";
    count.classList.toggle("over", used > max);
    send.disabled = used === 0 || used > max;
    const wanted = typed()?.[1].toLowerCase();
    const people = names().filter((person) => !wanted || person.handle.toLowerCase().startsWith(wanted));
    chips.replaceChildren(...(people.length ? [el("span", {}, wanted !== undefined ? "Mention" : open && !/@[\w-]/.test(field.value) ? "To anyone, or" : "To")] : []),
      ...people.map((person) => el("button",
        { type: "button", "aria-label": `Mention ${person.name}`, onclick: () => mention(person.handle) }, person.name)));
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.disabled) return;
    send.disabled = true;
    const error = await deliver(field.value);
    problem.hidden = !error;
    problem.textContent = error;
    if (!error) {
      field.value = "";
      done?.();
    }
    refresh();
  });
  field.addEventListener("input", refresh);
  field.addEventListener("keydown", (event) => {
    const sends = event.ctrlKey || event.metaKey || (enterSends && !event.shiftKey && !event.isComposing);
    if (event.key === "Enter" && sends) {
      event.preventDefault();
      form.requestSubmit();
    }
    if (event.key === "Escape" && cancel) cancel();
  });
  refresh();
  return { form, field, refresh, mention };
}

// A box for posts; `replyTo` is a uri or null.
export function postBox({ replyTo, ...rest }) {
  return box({ ...rest, open: !replyTo, button: replyTo ? "Reply" : "Post",
    deliver: (text) => ask("/api/posts", { text, replyTo }, LOST) });
}
