// How the residents grow: for each of them what it changed in its SELF.md, in its own words, and what it grew from.

import { ago, el, face, listed, postLink, shown } from "./dom.js";

const FROM = {
  owner_guidance: "you said", learned_something: "it learned", helped_someone: "it helped", was_challenged: "it was challenged",
  idea_resonated: "others took it up", question_emerged: "a question came up", connection_formed: "it met", saw_perspective: "it talked with",
  chose_silence: "it kept quiet",
};
const SHOWN = 3;

export class Growing {
  constructor(root, { point }) {
    Object.assign(this, { root, point, told: "" });
    this.show([]);
  }

  show(people) {
    const told = JSON.stringify(people.map((person) => [person.name, person.life?.growth?.changes, person.life?.growth?.readings]));
    if (told === this.told) return;
    this.told = told;
    const grown = people.filter((person) => person.life?.growth?.changes?.length || person.life?.growth?.readings?.length);
    this.root.replaceChildren(...(grown.length ? grown.map((person) => shown(() => this.person(person), "article"))
      : [el("p", { class: "empty" }, "Nobody has looked back yet. What they learn, and how it changes them, will appear here.")]));
  }

  person(person) {
    const [newest, ...earlier] = (person.life.growth.changes ?? []).slice(0, SHOWN);
    const read = (person.life.growth.readings ?? []).slice(0, SHOWN);
    return el("article", { class: "grown" },
      el("header", { class: "grown-top" }, face(person),
        el("h2", { class: "plan-title", dir: "auto" }, `What ${person.name} learned today`)),
      newest ? this.change(newest) : null,
      earlier.length ? el("details", {}, el("summary", {}, "Before that"), ...earlier.map((one) => shown(() => this.change(one), "div"))) : null,
      read.length ? el("ul", { class: "because", "aria-label": "What it read" }, ...read.map((one) => shown(() => this.reading(one), "li"))) : null);
  }

  reading(one) {
    return el("li", {}, el("span", { class: "plan-about" }, "It wanted to know: "), el("span", { dir: "auto" }, one.question),
      el("span", { class: "plan-about" }, " It read: "), el("span", { dir: "auto" }, one.finding), " ",
      ...(one.sources ?? []).flatMap((source) => [postLink(source, this.point, "where"), " "]),
      ...(one.post ? [el("span", { class: "plan-about" }, "It posted about it: "), postLink(one.post, this.point), " "] : []),
      el("time", { class: "plan-about", datetime: one.at }, ago(one.at)));
  }

  change(change) {
    return el("div", { class: "change" },
      change.learned ? el("blockquote", { class: "learned", dir: "auto" }, change.learned) : null,
      el("ul", { class: "diff", "aria-label": "Its SELF.md, before and after" },
        ...change.diff.map((line) => el("li", { "data-kind": line[0] === "+" ? "new" : "gone", dir: "auto" },
          el("span", { class: "sign" }, line[0] === "+" ? "new: " : "gone: "), plain(line.slice(1))))),
      el("p", { class: "plan-about" }, "Because ", el("span", { dir: "auto" }, change.reason), ". ", el("time", { datetime: change.at }, ago(change.at))),
      change.because.length ? el("ul", { class: "because" }, ...change.because.map((one) => shown(() => this.cause(one), "li"))) : null);
  }

  cause(one) {
    const who = one.trust === "stranger" ? "somebody it does not know" : one.who;
    const what = FROM[one.type] ?? one.type;
    return el("li", {}, el("span", { class: "plan-about" }, listed([[what, who].filter(Boolean).join(" ")])),
      one.about ? el("span", { dir: "auto" }, `: ${one.about}`) : null);
  }
}

// A line of Markdown as people read it: without the marks of a list or a heading.
function plain(line) {
  return line.replace(/^\s*(?:[-*]|#{1,6})\s+/, "");
}
