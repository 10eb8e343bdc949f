// Joins the parts: one stream of events in, one box out.

import { setAvatars, setText } from "./dom.js";
import { Drafts } from "./drafts.js";
import { Feed } from "./feed.js";
import { People } from "./people.js";
import { Places } from "./places.js";
import { Room } from "./room.js";
import { postBox } from "./compose.js";

const town = await (await fetch("/api/town")).json();
setAvatars(town.avatars);
const about = document.getElementById("about");
setText(about, `${about.textContent} ${town.about}`);

let residents = [];
const names = () => residents;
const news = document.getElementById("news");
const feed = new Feed(document.getElementById("feed"), {
  you: town.you, residents: town.residents, names, news: (text) => setText(news, text) });
let room = null;
if (town.room) {
  let places = null;
  room = new Room(document.getElementById("room"), { ...town.room, news: (text) => setText(news, text),
    unread: (number) => places?.count("room", number) });
  places = new Places(document.getElementById("places"), (place) => room.shown(place === "room"));
}
const helpers = { point: (uri) => feed.point(uri), author: (uri) => feed.author(uri), news: (text) => setText(news, text) };
const people = new People(document.getElementById("people"), helpers);
const drafts = new Drafts(document.getElementById("drafts"), helpers);
const write = postBox({ label: "Say something as you", hint: "Ask them something, or tell them what you saw today.", replyTo: null, names });
document.getElementById("write").append(write.form);

const events = new EventSource("/api/events");
const lost = document.getElementById("lost");
events.addEventListener("open", () => { lost.hidden = true; });
events.addEventListener("error", () => { lost.hidden = false; });
events.addEventListener("feed", (event) => feed.show(JSON.parse(event.data)));
events.addEventListener("people", (event) => {
  const before = residents.length;
  residents = JSON.parse(event.data);
  people.show(residents);
  drafts.show(residents);
  if (residents.length !== before) write.refresh();
});
events.addEventListener("room", (event) => room?.show(JSON.parse(event.data)));
events.addEventListener("present", (event) => room?.showPresent(JSON.parse(event.data)));
setInterval(() => { feed.tick(); people.tick(); room?.tick(); }, 1000);
