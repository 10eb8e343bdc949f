// How the residents grow: for each of them what it changed in its SELF.md, in its own words, and what it grew from.

import { send } from "./ask.js";
import { ago, el, face, listed, postLink, setText, shown } from "./dom.js";

const FROM = {
  owner_guidance: "you said", learned_something: "it learned", helped_someone: "it helped", was_challenged: "it was challenged",
  idea_resonated: "others took it up", question_emerged: "a question came up", connection_formed: "it met", saw_perspective: "it talked with",
  chose_silence: "it kept quiet",
};
const SHOWN = 3;
const STAGES = ["seen", "proposed", "approved", "mended"];
const REACHED = { ready: 0, making: 1, waiting: 2, taken: 3, mended: 4 };

export class Growing {
  // `waits` is told how many changes wait for approval, `news` speaks to screen readers.
  constructor(root, { point, news, waits }) {
    Object.assign(this, { root, point, news, waits, told: "" });
    this.show([]);
  }

  show(people) {
    const told = JSON.stringify(people.map(({ name, awake, life }) => [name, awake, life?.growth]));
    if (told === this.told) return;
    this.told = told;
    const focused = document.activeElement?.dataset?.held;
    this.open = new Set([...this.root.querySelectorAll("details[open]")].map((one) => one.dataset.key));
    this.waits(people.flatMap(held).length);
    const grown = people.filter((person) => person.life?.growth?.changes?.length || person.life?.growth?.readings?.length
      || held(person).length || mending(person)[0].length).sort((one, other) => held(other).length - held(one).length);
    this.root.replaceChildren(...(grown.length ? grown.map((person) => shown(() => this.person(person), "article"))
      : [el("p", { class: "empty" }, "Nobody has looked back yet. What they learn, and how it changes them, will appear here.")]));
    if (focused) this.root.querySelector(`[data-held="${CSS.escape(focused)}"]`)?.focus();
  }

  person(person) {
    const [newest, ...earlier] = (person.life.growth.changes ?? []).slice(0, SHOWN);
    const read = (person.life.growth.readings ?? []).slice(0, SHOWN);
    const [main, others] = mending(person);
    return el("article", { class: "grown" },
      el("header", { class: "grown-top" }, face(person),
        el("h2", { class: "plan-title", dir: "auto" }, `What ${person.name} learned today`)),
      ...held(person).map((one) => shown(() => this.held(person, one), "div")),
      ...main.slice(0, SHOWN).map((one) => shown(() => this.mending(person, one), "div")),
      newest ? this.change(newest) : null,
      earlier.length ? this.more(person, "Before that", ...earlier.map((one) => shown(() => this.change(one), "div"))) : null,
      read.length ? el("ul", { class: "because", "aria-label": "What it read" }, ...read.map((one) => shown(() => this.reading(one), "li"))) : null,
      others.length ? this.more(person, "What else goes wrong now and then", el("ul", { class: "because" },
        ...others.map((one) => shown(() => el("li", { dir: "auto" }, `${one.description}: ${one.count} ${one.count === 1 ? "time" : "times"}${one.stands ? `, ${one.stands}` : ""}`), "li")))) : null);
  }

  // What is folded, and stays open while the page goes on.
  more(person, title, ...inside) {
    const key = `${person.handle} ${title}`;
    return el("details", { "data-key": key, open: this.open.has(key) }, el("summary", {}, title), ...inside);
  }

  // A change of one of its files that the owner decides.
  held(person, one) {
    const problem = el("p", { class: "problem", role: "alert", hidden: true });
    const choose = (yes, label, style) => el("button", { type: "button", class: style, "data-held": `${person.handle} ${one.file} ${label}`,
      "aria-label": `${label}: ${one.file} of ${person.name}`, onclick: () => this.decide(person, one, yes, buttons, problem) }, label);
    const buttons = person.awake ? [choose(true, "Approve", "main-button"), choose(false, "Reject", "quiet-button")] : [];
    return el("div", { class: "change" }, el("h3", { dir: "auto" }, `${one.file} waits for your approval`),
      el("p", { dir: "auto" }, one.reason), this.diff(one.diff, "What it proposes"), el("div", { class: "choice" }, ...buttons), problem);
  }

  async decide(person, one, yes, buttons, problem) {
    buttons.forEach((button) => { button.disabled = true; });
    const error = await send("/api/drafts", { handle: person.handle, id: `${one.file}@${one.at}`, yes });
    problem.hidden = !error;
    setText(problem, error);
    buttons.forEach((button) => { button.disabled = !error; });
    if (!error) this.news(yes ? "Approved: it is read from now on" : "Rejected: all stays as it is");
  }

  // What went wrong again and again, how far it is with mending it, and what comes next.
  mending(person, one) {
    const waits = held(person).find(({ file }) => file.startsWith("skills/"))?.file.slice("skills/".length);
    const [told, of] = one.state === "proposed" ? [one.proposal.state, one.proposal.about] : [one.state, ""];
    const [step, made] = told === "making" && waits ? ["waiting", waits] : [told, of];
    const reached = REACHED[step] ?? 0;
    const next = ["It asks itself whether it can mend this.", "It decided to write itself a page about this.",
      waits === made ? `It wrote “${made}”, which waits for you.` : `You decided about “${made}”; it takes that up in a moment.`,
      `You approved “${made}”. Seven of its days are counted before it says whether this is mended, until ${clock(one.countedAt)}.`,
      one.stands][reached];
    return el("div", { class: "change" },
      el("h3", {}, `What went wrong ${one.count} ${one.count === 1 ? "time" : "times"} in its last seven days`),
      el("p", { class: "plan-about", dir: "auto" }, one.description),
      el("ol", { class: "stages", "aria-label": "How far it is" }, ...STAGES.map((stage, place) =>
        el("li", { "data-done": String(reached > place || place === 0) }, stage))),
      el("p", { dir: "auto" }, step === "seen" ? one.stands : next));
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
      this.diff(change.diff, "Its SELF.md, before and after"),
      el("p", { class: "plan-about" }, "Because ", el("span", { dir: "auto" }, change.reason), ". ", el("time", { datetime: change.at }, ago(change.at))),
      change.because.length ? el("ul", { class: "because" }, ...change.because.map((one) => shown(() => this.cause(one), "li"))) : null);
  }

  diff(lines, label) {
    return el("ul", { class: "diff", "aria-label": label },
      ...lines.filter((line) => !/^.---$/.test(line)).map((line) => el("li", { "data-kind": line[0] === "+" ? "new" : "gone", dir: "auto" },
        el("span", { class: "sign" }, line[0] === "+" ? "new: " : "gone: "), plain(line.slice(1)))));
  }

  cause(one) {
    const who = one.trust === "stranger" ? "somebody it does not know" : one.who;
    const what = FROM[one.type] ?? one.type;
    return el("li", {}, el("span", { class: "plan-about" }, listed([[what, who].filter(Boolean).join(" ")])),
      one.about ? el("span", { dir: "auto" }, `: ${one.about}`) : null);
  }
}

const held = (person) => [].concat(person.life?.growth?.waiting ?? []);
const clock = (moment) => new Date(moment).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });

// What it mends, or tried to, and what else goes wrong now and then.
function mending(person) {
  const all = [].concat(person.life?.growth?.friction ?? []);
  const main = all.filter((one) => one?.state in REACHED || one?.state === "proposed" || (one?.state === "seen" && one.proposal?.state));
  return [main, all.filter((one) => one?.count > 1 && !main.includes(one))];
}

// A line of Markdown as people read it: without the marks of a list or a heading.
function plain(line) {
  return line.replace(/^\s*(?:[-*]|#{1,6})\s+/, "");
}
