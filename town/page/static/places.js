// Places share the page, the square, the room and the work: tabs by which one of them is seen. The address remembers which.

import { setText } from "./dom.js";

export class Places {
  // `shown` is told the place that is seen now.
  constructor(tabs, shown) {
    this.tabs = [...tabs.querySelectorAll("[role=tab]:not([hidden])")];
    this.shown = shown;
    tabs.hidden = false;
    for (const tab of this.tabs) tab.addEventListener("click", () => this.go(tab));
    tabs.addEventListener("keydown", (event) => this.move(event));
    addEventListener("hashchange", () => this.go(this.wanted()));
    this.go(this.wanted());
  }

  wanted() {
    return this.tabs.find((tab) => `#${tab.dataset.place}` === location.hash) ?? this.tabs[0];
  }

  go(chosen) {
    for (const tab of this.tabs) {
      const here = tab === chosen;
      tab.setAttribute("aria-selected", here);
      tab.tabIndex = here ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !here;
    }
    const place = chosen.dataset.place;
    if (chosen !== this.wanted()) history.replaceState(null, "", chosen === this.tabs[0] ? location.pathname : `#${place}`);
    this.shown(place);
  }

  // The square, where the posts are.
  home() {
    this.go(this.tabs[0]);
  }

  move(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const at = this.tabs.indexOf(document.activeElement);
    const next = this.tabs[(at + step + this.tabs.length) % this.tabs.length];
    this.go(next);
    next.focus();
  }

  // How much is new in a place that is not seen.
  count(place, number) {
    const tab = this.tabs.find((one) => one.dataset.place === place);
    const mark = tab.querySelector(".new-count");
    mark.hidden = number === 0;
    setText(mark, number > 99 ? "99+" : String(number));
    tab.setAttribute("aria-label", number ? `${tab.dataset.name}, ${number} new` : tab.dataset.name);
  }
}
