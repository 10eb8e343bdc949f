// What waits for your approval, of all residents together. Nodes stay while they are in use, so that neither focus nor a
// click is lost when the town tells something new.

import { send } from "./ask.js";
import { arrange, el, face, postLink, setText, shown } from "./dom.js";

const SHOWN = 3;

export class Drafts {
  // `author` names who wrote a post or has a did, `point` shows it, `news` speaks to screen readers.
  constructor(root, { author, point, news }) {
    Object.assign(this, { root, author, point, news });
    this.nodes = new Map();
    this.heading = el("h2", { id: "drafts-title", tabindex: -1 }, "Waits for your approval");
    this.list = el("ul", { class: "drafts" });
    this.more = el("p", { class: "more" });
    root.replaceChildren(this.heading, this.list, this.more);
  }

  show(people) {
    const all = people.flatMap((person) => (person.awake ? person.life.drafts ?? [] : []).map((draft) => ({ person, draft })))
      .sort((a, b) => Date.parse(a.draft.createdAt) - Date.parse(b.draft.createdAt));
    const first = all.slice(0, SHOWN);
    const kept = new Set(first.map(({ draft }) => draft.id));
    const gone = [...this.nodes].filter(([id]) => !kept.has(id));
    const focused = gone.some(([, node]) => node.contains(document.activeElement));
    gone.forEach(([id]) => this.nodes.delete(id));
    arrange(this.list, first.map(({ person, draft }) => shown(() => this.draft(person, draft), "li")));
    setText(this.more, all.length > SHOWN ? `and ${all.length - SHOWN} more after these` : "");
    this.root.hidden = all.length === 0;
    if (focused && all.length) this.heading.focus();
  }

  draft(person, draft) {
    let node = this.nodes.get(draft.id);
    if (node) return node;
    const what = draft.act ?? draft.kind;
    const link = this.author(draft.target) ? postLink(draft.target, this.point) : null;
    const problem = el("p", { class: "problem", role: "alert", hidden: true });
    const choose = (yes, label, style) => el("button", { type: "button", class: style,
      "aria-label": `${label}: ${what} by ${person.name}`, onclick: () => this.decide(person, draft, yes, buttons, problem) }, label);
    const buttons = [choose(true, "Approve", "main-button"), choose(false, "Reject", "quiet-button")];
    node = el("li", {}, face(person),
      el("div", {},
        el("p", {}, el("strong", {}, person.name), `: ${what} `, ...(link ? [link] : [])),
        draft.text ? el("p", { class: "text", dir: "auto" }, draft.text) : null,
        el("p", { class: "waits" }, `It waits: ${draft.why}`),
        el("div", { class: "choice" }, ...buttons), problem));
    this.nodes.set(draft.id, node);
    return node;
  }

  async decide(person, draft, yes, buttons, problem) {
    buttons.forEach((button) => { button.disabled = true; });
    const error = await send("/api/drafts", { handle: person.handle, id: draft.id, yes });
    problem.hidden = !error;
    setText(problem, error);
    buttons.forEach((button) => { button.disabled = !error; });
    if (!error) this.news(yes ? "Approved: it leaves at its turn" : "Rejected: it stays unsaid");
  }
}
