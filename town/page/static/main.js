// Joins the parts: one stream of events in, one box out.

import { setAvatars, setText } from "./dom.js";
import { Drafts } from "./drafts.js";
import { Feed } from "./feed.js";
import { Growing } from "./growing.js";
import { People } from "./people.js";
import { Places } from "./places.js";
import { Rituals } from "./rituals.js";
import { Room } from "./room.js";
import { Work } from "./work.js";
import { postBox } from "./compose.js";

const lost = document.getElementById("lost");
const town = await opened();
setAvatars(town.avatars);
const about = document.getElementById("about");
setText(about, town.about);
const lacks = document.getElementById("lacks");
lacks.hidden = !town.lacks;
setText(lacks, town.lacks);

let residents = [];
const names = () => residents;
const news = document.getElementById("news");
const feed = new Feed(document.getElementById("feed"), {
  you: town.you, residents: town.residents, names, news: (text) => setText(news, text) });
let room = null;
let work = null;
let places = null;
if (town.room) {
  document.getElementById("tab-work").hidden = !town.room.work;
  if (town.room.work) work = new Work(document.getElementById("work"), town.room);
  room = new Room(document.getElementById("room"), { ...town.room, news: (text) => setText(news, text),
    unread: (number) => places?.count("room", number) });
  places = new Places(document.getElementById("places"), (place) => room.shown(place === "room"));
}
const helpers = { point: (uri) => feed.point(uri), author: (uri) => feed.author(uri), news: (text) => setText(news, text) };
const people = new People(document.getElementById("people"), helpers);
const growing = new Growing(document.getElementById("growing-selves"), {
  ...helpers, waits: (number) => places?.count("growing", number) });
const drafts = new Drafts(document.getElementById("drafts"), helpers);
const write = postBox({ label: "Say something as you", hint: "Ask them something, or tell them what you saw today.", replyTo: null, names });
document.getElementById("write").append(write.form);

// On a narrow screen who lives here stands between the box and the posts; on a wide one beside them.
const wide = matchMedia("(min-width: 60rem)");
function place() {
  const side = document.getElementById("side");
  if (wide.matches) document.querySelector(".page").append(side);
  else document.getElementById("write").after(side);
}
wide.addEventListener("change", place);
place();

const events = new EventSource("/api/events");
events.addEventListener("open", () => { lost.hidden = true; });
events.addEventListener("error", () => { lost.hidden = false; });
// Each part is shown by itself: what one of them cannot do leaves the others as they are.
function on(name, ...parts) {
  events.addEventListener(name, (event) => {
    const told = JSON.parse(event.data);
    for (const part of parts) {
      try {
        part(told);
      } catch (error) {
        console.error(`${name} cannot be shown`, error);
      }
    }
  });
}
on("feed", (threads) => feed.show(threads));
on("people", (told) => {
  const before = residents.length;
  residents = told;
  if (residents.length !== before) write.refresh();
}, (told) => people.show(told), (told) => drafts.show(told), (told) => growing.show(told), (told) => feed.tick(told));
on("room", (rows) => room?.show(rows));
on("work", (told) => work?.show(told));
const rituals = new Rituals(document.getElementById("rituals"), { point: (uri) => { places?.home(); feed.point(uri); } });
on("people", (told) => rituals.show(told));
on("present", (present) => room?.showPresent(present));
setInterval(() => { feed.tick(residents); people.tick(); room?.tick(); }, 1000);

// What does not change while the page is open; asked for until the town answers.
async function opened() {
  for (;;) {
    try {
      const told = await (await fetch("/api/town")).json();
      lost.hidden = true;
      return told;
    } catch {
      lost.hidden = false;
      await new Promise((again) => { setTimeout(again, 1000); });
    }
  }
}
