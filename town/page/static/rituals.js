// The rituals of the residents: today's thread, who has which part in it, and the memos that came of it.

import { el, face, shown } from "./dom.js";

const PARTS = ["analyst", "critic", "observer"];

export class Rituals {
  // `point` leads to a post on the square.
  constructor(root, { point }) {
    Object.assign(this, { root, point, told: "" });
  }

  show(people) {
    const kept = new Map();
    for (const person of people) {
      for (const ritual of person.life?.rituals ?? []) {
        const key = String(ritual.name).toLowerCase();
        kept.set(key, [...(kept.get(key) ?? []), { person, ritual }]);
      }
    }
    const told = JSON.stringify([...kept.values()].map((each) => each.map((one) => [one.person.name, one.ritual])));
    if (told === this.told) return;
    this.told = told;
    this.root.hidden = kept.size === 0;
    this.root.replaceChildren(el("h2", { class: "quiet-title" }, "Rituals"),
      ...[...kept.values()].map((each) => shown(() => this.ritual(each), "article")));
  }

  ritual(each) {
    const newest = each.map((one) => one.ritual.day ?? "").reduce((left, right) => (left > right ? left : right));
    const opener = each.find((one) => one.ritual.role === "initiator") ?? each[0];
    const thread = each.find((one) => one.ritual.day === newest && one.ritual.thread)?.ritual.thread;
    const taking = each.filter((one) => one.ritual.day === newest && one.ritual.thread === thread && thread);
    return el("article", { class: "ritual" },
      el("h3", { dir: "auto" }, opener.ritual.name),
      el("p", { class: "about" }, thread ? `${newest}, opened by ${who(each, thread)}` : "Not opened yet."),
      el("ul", {}, ...taking.map((one) => shown(() => this.part(one), "li"))),
      thread ? el("button", { type: "button", class: "quiet-button", onclick: () => this.point(thread) }, "See the thread") : null,
      opener.ritual.nextAt ? el("p", { class: "about" }, `Next: ${String(opener.ritual.nextAt).replace("T", ", ")}`) : null);
  }

  part({ person, ritual }) {
    return el("li", {}, face(person), el("span", { class: "ritual-who" },
      el("span", { dir: "auto" }, person.name), el("span", { class: "part" }, PARTS.includes(ritual.part) ? ritual.part : "takes part"),
      /^https?:\/\//.test(ritual.artefact)
        ? el("a", { href: ritual.artefact, target: "_blank", rel: "noopener noreferrer" }, ritual.artefact.includes("#") ? "Its comment on the memo" : "Its memo")
        : el("span", { class: "about" }, "no memo yet")));
  }
}

// Who opened the thread with this address: the account in it, by its name where it lives here.
function who(each, thread) {
  const opener = each.find((one) => one.ritual.role === "initiator");
  const did = String(thread).split("/")[2];
  return each.find((one) => one.person.did === did)?.person.name ?? opener?.person.name ?? "somebody";
}
