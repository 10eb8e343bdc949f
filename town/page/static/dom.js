// Building blocks. Other people's words only ever become text nodes.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function icon(path, className) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  if (className) svg.setAttribute("class", className);
  const shape = document.createElementNS(ns, "path");
  shape.setAttribute("d", path);
  svg.append(shape);
  return svg;
}

export const HEART = "M12 20.500s-7.8-4.7-9.3-9.700C1.5 6.8 4 4 7 4c2.1 0 3.9 1.2 5 3 1.1-1.8 2.9-3 5-3 3 0 5.5 2.8 4.3 6.800C19.8 15.8 12 20.5 12 20.500z";

// What `make` gives; for an item that cannot be shown a line that says so, so that the others are.
export function shown(make, tag = "p") {
  try {
    return make();
  } catch (error) {
    return el(tag, { class: "odd", title: String(error) }, "Something here cannot be shown.");
  }
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Puts `nodes` into `parent` in this order, moving only what is out of place.
export function arrange(parent, nodes) {
  nodes.forEach((node, place) => {
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] ?? null);
  });
  while (parent.children.length > nodes.length) parent.lastElementChild.remove();
}

// A link to a post on this page, by its address or by its link on Bluesky; none where it is no post.
export function postLink(address, point, words = "show post") {
  const uri = String(address ?? "").replace(/^https:\/\/bsky\.app\/profile\/(did:[^/]+)\/post\/(\w+)$/, "at://$1/app.bsky.feed.post/$2");
  return uri.startsWith("at://") ? el("a", { href: "#feed", onclick: (event) => {
    if (point(uri)) event.preventDefault();
  } }, words) : null;
}

let known = new Set();
export function setAvatars(handles) {
  known = new Set(handles);
}

export function face(actor) {
  const src = known.has(actor.handle) ? `/avatars/${encodeURIComponent(actor.handle)}` : "/static/face.svg";
  return el("img", { class: "face", src, alt: "", width: 44, height: 44 });
}

export function ago(moment, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - Date.parse(moment)) / 1000));
  if (Number.isNaN(seconds)) return "";
  if (seconds < 10) return "now";
  if (seconds < 60) return `${seconds}\u00a0s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}\u00a0min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}\u00a0h`;
  return new Date(moment).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

export function until(moment, now = Date.now()) {
  const seconds = Math.round((Date.parse(moment) - now) / 1000);
  if (Number.isNaN(seconds)) return "";
  if (seconds <= 0) return "now";
  if (seconds < 60) return `${seconds}\u00a0s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
