// Somebody's words as nodes: **bold**, *italic*, `code`, names of who is here, and links that lead into this town only.
// All of it becomes text nodes inside elements of ours; an address of another place stays plain text.

import { el } from "./dom.js";

const MARKED = /`([^`\n]{1,400})`|\*\*((?=[^\s*])[^\n]{1,400}?[^\s*])\*\*|(?<![\w*])\*((?=[^\s*])[^*\n]{1,400}(?<=\S))\*(?![\w*])|(https?:\/\/[^\s<>"'`*]+[^\s<>"'`*.,;:!?)\]])|@([\p{L}\p{N}_][\p{L}\p{N}_.-]*)/gu;

export function words(text, { names, links }) {
  const known = new Set(names.map((name) => name.toLowerCase()));
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(MARKED)) {
    const [whole, code, bold, italic, url, name] = match;
    const node = code ? el("code", {}, code)
      : bold ? el("strong", {}, bold)
      : italic ? el("em", {}, italic)
      : url && leadsInto(url, links) ? el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, short(url, links))
      : name && known.has(name.replace(/[.-]+$/, "").toLowerCase()) ? el("span", { class: "mention" }, whole)
      : null;
    if (!node) continue;
    if (match.index > end) nodes.push(text.slice(end, match.index));
    nodes.push(node);
    end = match.index + whole.length;
  }
  if (end < text.length) nodes.push(text.slice(end));
  return nodes;
}

function leadsInto(url, place) {
  try {
    return Boolean(place) && new URL(url).origin === new URL(place).origin;
  } catch {
    return false;
  }
}

// "http://127.0.0.1:4321/town/square/issues/3" reads as "town/square #3".
function short(url, place) {
  const path = readable(new URL(url).pathname).replace(/^\/+/, "");
  const issue = /^([^/]+\/[^/]+)\/(?:issues|pull)\/(\d+)$/.exec(path);
  return issue ? `${issue[1]} #${issue[2]}` : path || new URL(place).host;
}

// A path as people write it; where that is not possible, or would hide or turn something, as it stands.
function readable(path) {
  try {
    const plain = decodeURI(path);
    return /[\p{C}\p{Z}]/u.test(plain) ? path : plain;
  } catch {
    return path;
  }
}
