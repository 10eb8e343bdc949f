// The room: who is in it, the talk, and a box in which "you" speak as its host. Rows come with numbers that never come
// again, so what is shown already stays where it is, and whoever reads further up is not torn away.

import { send } from "./ask.js";
import { box } from "./compose.js";
import { ago, arrange, el, face, icon, listed, setText, shown } from "./dom.js";
import { words } from "./words.js";

const MAX = 4000;
const NEAR = 80;
const GAP = 5 * 60_000;
const LOST = "The town cannot be reached. Your words are still here; try again in a moment.";
const SPOKEN = new Set(["said", "host"]);
const SAYS = {
  joined: "came in", left: "left", claimed: "works on", done: "is done:", failed: "could not",
  reflected: "learned:", progress: "at", blocked: "is stuck:", trouble: "",
};
const SIGNS = {
  joined: "M10 4h9v16h-9v-2h7V6h-7zM9 8l4 4-4 4v-3H3v-2h6z",
  left: "M5 4h9v2H7v12h7v2H5zM16 8l4 4-4 4v-3h-6v-2h6z",
  claimed: "M5 19.500l1-4.500L16.500 4.500l3.500 3.500L9.500 18.500z",
  done: "M9.500 16.600L5 12.100l1.500-1.500 3 3 8-8L19 7.100z",
  failed: "M6.500 5L12 10.500 17.500 5 19 6.500 13.500 12l5.500 5.500-1.500 1.500L12 13.500 6.500 19 5 17.500 10.500 12 5 6.500z",
  reflected: "M12 3l2 7 7 2-7 2-2 7-2-7-7-2 7-2z",
  progress: "M5 13h3v6H5zM10.500 9h3v10h-3zM16 5h3v14h-3z",
  blocked: "M7 5h3.500v14H7zM13.500 5H17v14h-3.500z",
  trouble: "M12 4l9 16H3zM11 10v5h2v-5zM11 16.500v2h2v-2z",
};

export class Room {
  // `github` is where links may lead, `requests` are pieces of work to ask for, `builds` what can be built, `unread` is told how many rows nobody has seen, `news` speaks to screen readers.
  constructor(root, { github, requests, builds, unread, news }) {
    Object.assign(this, { root, github, unread, news });
    this.nodes = new Map();
    this.present = [];
    this.missed = 0;
    this.stays = true;
    this.last = null;
    this.faces = el("ul", { class: "here", "aria-label": "In the room now" });
    this.alone = el("p", { class: "alone" }, "Nobody has come in yet. They find the room by themselves in a moment.");
    this.list = el("ol", { class: "talk" });
    this.asks = el("div", { class: "empty" }, el("p", {}, "Ask them what they think, or for a piece of work:"),
      ...["What would you change about the town square first?", ...requests].map((text) =>
        el("button", { type: "button", class: "quiet-button", onclick: () => this.propose(text) }, text)),
      builds ? el("p", {}, ...this.words(builds)) : null);
    this.log = el("div", { class: "log", tabindex: 0, role: "region", "aria-label": "The talk" }, this.list, this.asks);
    this.typing = el("p", { class: "typing" }, el("span", { class: "dots", "aria-hidden": "true" },
      el("i"), el("i"), el("i")), el("span"));
    this.down = el("button", { class: "down", type: "button", hidden: true, onclick: () => this.toEnd(true) }, "Newest ↓");
    this.write = box({ label: "Speak as the host", hint: "Ask for their view, or for work.",
      names: () => this.present.map(({ room, name }) => ({ handle: room, name })), max: MAX, button: "Say it", enterSends: true,
      deliver: (text) => send("/api/room", { text }, LOST), done: () => this.toEnd() });
    this.log.addEventListener("scroll", () => {
      this.stays = this.atEnd();
      this.seen();
    }, { passive: true });
    new ResizeObserver(() => { if (this.stays) this.toEnd(); }).observe(this.log);
    root.replaceChildren(this.faces, this.alone, el("div", { class: "window" }, this.log, this.down), this.typing, this.write.form);
    this.showTyping();
  }

  showPresent(present) {
    this.present = present;
    this.alone.hidden = present.length > 0;
    arrange(this.faces, present.map((guest) => shown(() => this.guest(guest), "li")));
    this.showTyping();
    this.write.refresh();
  }

  guest(guest) {
    this.guests ??= new Map();
    let node = this.guests.get(guest.room);
    if (!node) {
      node = { li: el("li"), doing: el("span", { class: "does" }) };
      node.li.append(face(guest), el("span", { class: "guest" }, el("strong", {}, guest.name), node.doing));
      this.guests.set(guest.room, node);
    }
    node.li.title = `${guest.room}, version ${guest.version}${guest.detail ? `: ${guest.detail}` : ""}`;
    node.li.dataset.state = guest.state;
    setText(node.doing, guest.typing ? "is writing" : guest.state === "idle" ? "listens" : guest.state);
    return node.li;
  }

  showTyping() {
    const names = this.present.filter((guest) => guest.typing).map((guest) => guest.name);
    this.typing.classList.toggle("quiet", names.length === 0);
    setText(this.typing.lastElementChild, names.length ? `${listed(names)} ${names.length > 1 ? "are" : "is"} writing …` : "");
  }

  show(rows) {
    const first = this.last === null;
    const added = rows.filter((row) => first || row.id > this.last);
    const kept = new Set(rows.map((row) => row.id));
    for (const [id, node] of this.nodes) {
      if (!kept.has(id)) {
        node.remove();
        this.nodes.delete(id);
      }
    }
    for (const row of added) {
      const node = shown(() => this.row(row, this.before), "li");
      if (!first) node.classList.add("new");
      this.nodes.set(row.id, node);
      this.list.append(node);
      this.before = row;
    }
    this.last = rows.at(-1)?.id ?? this.last ?? 0;
    this.asks.hidden = rows.some((row) => row.kind === "host");
    this.tick();
    if (first || this.stays || added.some((row) => row.kind === "host")) this.toEnd();
    const spoken = added.filter((row) => SPOKEN.has(row.kind) && row.kind !== "host");
    if (first || !spoken.length) return;
    if (this.root.hidden || !this.atEnd()) this.missed += spoken.length;
    this.news(`${listed([...new Set(spoken.map((row) => row.by.name))])} in the room`);
    this.seen();
  }

  row(row, before) {
    const time = el("time", { datetime: row.at }, "");
    if (!SPOKEN.has(row.kind)) {
      return el("li", { class: `event ${row.kind}` }, icon(SIGNS[row.kind]), el("p", {},
        row.by ? el("strong", {}, row.by.name) : null, ` ${SAYS[row.kind]} `, ...this.words(row.text),
        ...(row.link ? [" ", this.link(row.link)] : [])), time);
    }
    const goesOn = before && before.kind === row.kind && before.by.name === row.by.name
      && Date.parse(row.at) - Date.parse(before.at) < GAP;
    return el("li", { class: `said ${row.kind === "host" ? "host" : ""} ${goesOn ? "goes-on" : ""}` },
      goesOn ? el("span") : face(row.by),
      el("div", {},
        el("p", { class: goesOn ? "by unseen-by" : "by" }, el("strong", {}, row.by.name),
          row.kind === "host" ? el("span", { class: "role" }, "host") : null, time),
        el("div", { class: "words", dir: "auto" }, ...this.words(row.text))));
  }

  words(text) {
    return words(text, { names: this.present.map((guest) => guest.room), links: this.github });
  }

  link(url) {
    const ours = words(url, { names: [], links: this.github });
    return el("span", {}, ...ours);
  }

  propose(text) {
    this.write.field.value = text;
    this.write.refresh();
    this.write.field.focus();
  }

  // Called when the room comes into view or goes out of it.
  shown(visible) {
    this.root.hidden = !visible;
    if (visible) this.toEnd();
  }

  atEnd() {
    const end = this.log.scrollHeight - this.log.clientHeight;
    return (this.asks.hidden ? end : Math.min(end, this.asks.offsetTop)) - this.log.scrollTop < NEAR;
  }

  toEnd(focus = false) {
    this.stays = true;
    this.log.scrollTop = this.asks.hidden ? this.log.scrollHeight : this.asks.offsetTop;
    if (focus) this.write.field.focus();
    this.seen();
  }

  seen() {
    if (!this.root.hidden && this.atEnd()) this.missed = 0;
    this.down.hidden = this.atEnd();
    setText(this.down, this.missed ? `${this.missed} new ↓` : "Newest ↓");
    this.unread(this.missed);
  }

  tick() {
    for (const time of this.list.querySelectorAll("time")) setText(time, ago(time.dateTime));
  }
}
