// The threads. What is already on the page stays where it is; only what changed is touched.

import { HEART, ago, arrange, el, face, icon, listed, setText, shown } from "./dom.js";
import { postBox } from "./compose.js";
import { disclosure } from "./story.js";

const WRITES_MS = 20_000;
const MENTION = /(@[a-z0-9-]+(?:\.[a-z0-9-]+)+)/gi;

export class Feed {
  constructor(root, { you, residents, names, news }) {
    this.root = root;
    this.residents = new Set(residents);
    this.you = you;
    this.names = names;
    this.news = news;
    this.threads = new Map();
    this.posts = new Map();
    this.authors = new Map();
    this.waits = new Map();
    this.first = true;
    this.reply = null;
  }

  show(threads) {
    document.getElementById("empty")?.toggleAttribute("hidden", threads.length > 0);
    const fresh = [];
    const nodes = threads.map((thread) => shown(() => this.thread(thread, fresh), "article"));
    const gone = new Set(this.threads.keys());
    threads.forEach((thread) => gone.delete(thread.uri));
    gone.forEach((uri) => {
      this.waits.delete(this.threads.get(uri));
      this.threads.delete(uri);
    });
    if (this.reply) {
      const writing = this.reply.form.closest(".thread");
      if (!nodes.includes(writing)) nodes.push(writing);
      nodes.sort((a, b) => this.place(a) - this.place(b));
    }
    arrange(this.root, [...(document.getElementById("empty") ? [document.getElementById("empty")] : []), ...nodes]);
    if (!this.first && fresh.length) {
      const others = fresh.filter((post) => post.author.did !== this.you.did);
      if (others.length) this.news(`New from ${listed([...new Set(others.map((post) => post.author.name))])}`);
    }
    this.first = false;
  }

  // While someone writes a reply, threads keep their order, and the one answered stays even if its posts are gone.
  place(node) {
    const at = [...this.root.children].indexOf(node);
    return at < 0 ? -1 : at;
  }

  thread(thread, fresh) {
    let node = this.threads.get(thread.uri);
    if (!node) {
      node = el("article", { class: "thread" }, el("div", { class: "posts" }),
        el("p", { class: "writing typing", hidden: true }, el("span", { class: "dots", "aria-hidden": "true" },
          el("i"), el("i"), el("i")), el("span")));
      this.threads.set(thread.uri, node);
    }
    const last = thread.posts.length - 1;
    const named = new Map(thread.posts.map((post) => [post.uri, this.nameOf(post.author)]));
    thread.posts.forEach((post) => {
      this.authors.set(post.uri, this.nameOf(post.author));
      this.authors.set(post.author.did, this.nameOf(post.author));
    });
    const posts = thread.posts.map((post, place) => {
      const jumps = place > 0 && post.parent !== thread.posts[place - 1].uri;
      return shown(() => this.post(post, place === last, fresh, jumps ? named.get(post.parent) : ""));
    });
    arrange(node.firstElementChild, posts);
    this.waits.set(node, waiting(thread.posts));
    node.setAttribute("aria-label", `Thread by ${thread.posts[0].author.name}`);
    return node;
  }

  nameOf(actor) {
    return actor.did === this.you.did ? "You" : actor.name;
  }

  // `to` names whom it answers when that is not the post above it.
  post(post, isLast, fresh, to) {
    let node = this.posts.get(post.uri);
    if (!node) {
      fresh.push(post);
      node = this.build(post);
      this.posts.set(post.uri, node);
    }
    node.classList.toggle("last", isLast);
    const aside = node.querySelector(".to");
    aside.hidden = !to;
    setText(aside, to ? `to ${to === "You" ? "you" : to}` : "");
    const likers = post.likes.map((actor) => (actor.did === this.you.did ? "you" : actor.name));
    const liked = node.querySelector(".liked");
    liked.hidden = likers.length === 0;
    setText(liked.lastElementChild, likers.length ? `Liked by ${listed(likers)}` : "");
    return node;
  }

  build(post) {
    const name = this.nameOf(post.author);
    const time = el("time", { datetime: post.at, title: new Date(post.at).toLocaleString() }, ago(post.at));
    const words = post.text.split(MENTION)
      .map((part, place) => (place % 2 ? el("span", { class: "mention" }, part) : part));
    const asked = this.residents.has(post.author.handle) ? disclosure(post, name) : null;
    const node = el("div", { class: `post${this.first ? "" : " new"}`, "data-uri": post.uri },
      face(post.author),
      el("div", { class: "by" }, el("strong", {}, name), el("span", { class: "handle" }, `@${post.author.handle}`), time),
      el("p", { class: "to", hidden: true }),
      el("p", { class: "text", dir: "auto" }, ...words),
      post.pictures.length ? el("div", { class: "pictures" }, ...post.pictures.map((one) => el("img", {
        src: one.url, alt: one.alt, title: one.alt, width: one.width, height: one.height, decoding: "async" }))) : null,
      el("div", { class: "acts" },
        el("button", { type: "button", "aria-label": `Reply to ${name}`, onclick: () => this.answer(post, node, name) }, "Reply"),
        asked?.button,
        el("span", { class: "liked", hidden: true }, icon(HEART), el("span"))),
      asked?.panel);
    return node;
  }

  answer(post, node, name) {
    this.reply?.form.remove();
    const close = () => {
      this.reply?.form.remove();
      this.reply = null;
      node.querySelector(".acts button").focus();
    };
    const whom = name === "You" ? "yourself" : name;
    this.reply = postBox({ label: `Reply to ${whom}`, replyTo: post.uri, names: this.names, done: close, cancel: close });
    node.closest(".thread").append(this.reply.form);
    this.reply.field.focus();
  }

  // The name of a post's author, or of who has a did; "" if they were never on the page.
  author(name) {
    return this.authors.get(name) ?? "";
  }

  // Scrolls to a post and marks it; false if it is not on the page.
  point(uri) {
    const node = this.posts.get(uri);
    if (!node?.isConnected) return false;
    document.querySelectorAll(".pointed").forEach((old) => old.classList.remove("pointed"));
    node.classList.add("pointed");
    node.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    return true;
  }

  // `residents` are those who live here, by whom it is known who is awake.
  tick(residents) {
    const awake = new Map(residents.filter((one) => one.awake).map((one) => [one.handle, one.name]));
    for (const [node, heard] of this.waits) {
      const names = [...heard].filter(([handle, since]) => awake.has(handle) && Date.now() - since < WRITES_MS)
        .map(([handle]) => awake.get(handle));
      const line = node.querySelector(".writing");
      line.hidden = names.length === 0;
      setText(line.lastElementChild, names.length ? `${listed(names)} ${names.length > 1 ? "are" : "is"} writing …` : "");
    }
    for (const time of this.root.querySelectorAll(".by time")) setText(time, ago(time.dateTime));
  }
}

// Who was told of something in this thread and has done nothing about it yet, with the moment at which they were told.
function waiting(posts) {
  const heard = new Map();
  for (const post of [...posts].sort((a, b) => Date.parse(a.at) - Date.parse(b.at))) {
    heard.delete(post.author.handle);
    for (const handle of post.told) {
      if (!post.likes.some((one) => one.handle === handle)) heard.set(handle, Date.parse(post.at));
    }
  }
  return heard;
}
