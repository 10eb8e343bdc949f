// Who lives here, and what each is doing now.

import { ago, arrange, el, face, icon, postLink, setText, shown, until } from "./dom.js";
import { Tend } from "./tend.js";

const CHEVRON = "M8.5 5l7 7-7 7-1.5-1.500L12.5 12 7 6.500z";
const DOING = new Map(Object.entries({
  awareness: "Reading what reached it",
  "expression-check": "Thinking of something to say",
  owner: "Talking with its owner",
  reflection: "Looking back on what it lived through",
  peers: "Finding words for a neighbour",
  post: "Answering on the square",
  thread: "Answering on GitHub",
  message: "Answering a direct message",
  tasks: "Doing a task of a plan",
  "github-experiences": "Remembering what happened on GitHub",
  "space-participation": "Following the room",
  "commitment-fulfillment": "Doing what it said it would do",
}));
const ROOM = /^\[space\] /;
const ASIDE = / \([^()]*\)$/;
const COUNTS = [["posts", "posts"], ["replies", "replies"], ["likes", "likes"], ["silences", "silences"]];

export class People {
  // `point` shows a post, `news` speaks to screen readers.
  constructor(root, helpers) {
    this.root = root;
    this.helpers = helpers;
    this.cards = new Map();
  }

  show(people) {
    arrange(this.root, people.map((person) => shown(() => this.card(person), "li")));
    this.tick();
  }

  card(person) {
    let card = this.cards.get(person.handle);
    if (!card) {
      card = { node: el("li"), doing: el("span"), mark: el("span", { class: "mark" }), lately: el("span", { class: "lately" }), box: el("div", { class: "life" }),
        tend: new Tend(person, this.helpers), person };
      card.details = el("details", { class: "person" },
        el("summary", {}, face(person),
          el("span", { class: "who" }, el("h3", {}, person.name), el("span", { class: "handle" }, `@${person.handle}`), card.mark),
          icon(CHEVRON, "chevron"), el("span", { class: "doing" }, card.doing), card.lately),
        el("div", { class: "inside" }, card.tend.node, card.box));
      card.node.append(card.details);
      this.cards.set(person.handle, card);
    }
    card.person = person;
    card.details.classList.toggle("awake", person.awake);
    card.details.classList.toggle("asleep", !person.awake && !person.elsewhere);
    card.tend.show(person);
    setText(card.mark, badge(person));
    card.mark.hidden = !badge(person);
    setText(card.lately, lately(person));
    card.next = el("ul", { class: "next" });
    card.box.replaceChildren(...this.life(person, card.next));
    return card.node;
  }

  life(person, next) {
    const { counts, decisions = [], waits: { posts: waiting, acts: leaving } = {} } = person.life;
    const newest = [...decisions].sort((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, 3);
    return [
      person.bio ? el("p", { class: "bio" }, person.bio) : null,
      person.follows?.length ? el("p", {}, `Found and follows ${person.follows.map(({ name }) => name).join(", ")}`) : null,
      counts ? el("dl", {}, ...COUNTS.map(([key, word]) =>
        el("div", {}, el("dt", {}, word), el("dd", {}, String(counts[key] ?? 0))))) : null,
      person.awake ? el("div", {}, el("h4", {}, "Next"), next) : null,
      waiting || leaving ? el("p", {}, [waiting ? `${waiting} waiting to be read` : "", leaving ? `${leaving} on the way out` : ""]
        .filter(Boolean).join(", ")) : null,
      newest.length ? el("div", {}, el("h4", {}, "Lately decided"), ...newest.map((item) => this.decision(item))) : null,
    ].filter(Boolean);
  }

  decision({ at, summary, reason, triggerUri }) {
    const link = postLink(triggerUri, this.helpers.point);
    return el("div", { class: "decision" },
      el("p", {}, String(summary).replace(ROOM, "In the room: "), " ", el("span", { class: "handle" }, ago(at)), ...(link ? [" ", link] : [])),
      reason && reason !== summary ? el("p", { class: "why" }, `Why: ${reason}`) : null);
  }

  tick() {
    for (const { person, doing, next } of this.cards.values()) {
      setText(doing, say(person));
      if (next) next.replaceChildren(...coming(person).map(([what, at]) => el("li", {}, el("span", {}, what), el("span", {}, until(at)))));
    }
  }
}

function badge({ awake, life: { standing } }) {
  if (!awake || !standing) return "";
  return standing.safeMode ? "safe mode" : standing.paused ? "paused" : "";
}

// The newest decision, in one line.
function lately({ awake, life: { decisions = [] } }) {
  const newest = decisions.reduce((best, one) => (!best || Date.parse(one.at) > Date.parse(best.at) ? one : best), null);
  return awake && newest ? String(newest.summary).replace(ROOM, "In the room: ").replace(ASIDE, "") : "";
}

function coming({ life }) {
  const reading = (life.loops ?? []).find((loop) => loop.name === "awareness")?.nextAt;
  return [["Reads its mentions", reading], ["Thinks of a post", life.nextExpressionAt]]
    .filter(([, at]) => at).sort((a, b) => Date.parse(a[1]) - Date.parse(b[1]));
}

// What keeps it from acting, with the time that is left of it; "" if nothing does.
function waits({ troubles = [] }) {
  const [{ what, wait } = {}] = troubles.map((one) => ({ what: one.what, wait: one.until ? until(one.until) : "" }))
    .filter((one) => one.wait !== "now");
  return what ? `Waits: ${what}${wait ? `, goes on in ${wait}` : ""}` : "";
}

function say(person) {
  if (person.elsewhere) return "";
  if (!person.awake) return person.gettingUp ? "Getting up" : "Not awake";
  const { mode } = person.life;
  if (badge(person)) return "Only listening";
  const trouble = waits(person.life);
  if (trouble) return trouble;
  if (mode && mode !== "idle") return DOING.get(mode) ?? `Busy with ${mode.replaceAll("-", " ")}`;
  const thought = person.life.nextExpressionAt;
  if (!thought) return "Listening";
  const wait = until(thought);
  return wait === "now" ? "Listening, a thought is due" : `Listening, next thought in ${wait}`;
}
