// The owner's hand on a resident: its budget of the day, and its pause. The nodes stay, so that no click is lost when
// the town tells something new.

import { send } from "./ask.js";
import { el, setText, until } from "./dom.js";

const STEPS = new Map(Object.entries({
  normal: "all is well",
  cheaper: "a cheaper model thinks, if there is one",
  pressing: "works only for you, mentions and commitments",
  owner_only: "thinks only for you",
  listen: "only listens until the next day",
}));
const LEAST_SHOWN = 0.5;

const count = new Intl.NumberFormat("en");
const part = (amount) => (amount?.cap ? amount.used / amount.cap : 0);

export class Tend {
  // `news` speaks to screen readers.
  constructor(person, { news }) {
    Object.assign(this, { news, handle: person.handle, name: person.name });
    this.step = el("span");
    this.fill = el("span");
    this.bar = el("div", { class: "bar", role: "meter", "aria-label": `${this.name}'s model budget of today`,
      "aria-valuemin": 0, "aria-valuemax": 100 }, this.fill);
    this.spent = el("p", { class: "spent" });
    this.budget = el("div", { class: "budget" }, el("p", {}, el("span", {}, "Model budget"), this.step), this.bar, this.spent);
    this.reasons = el("p", { class: "reasons" });
    this.button = el("button", { type: "button", class: "quiet-button", onclick: () => this.pause() });
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    this.standing = el("div", { class: "standing" }, this.reasons, this.button, this.problem);
    this.node = el("div", { class: "tend" }, this.budget, this.standing);
  }

  show({ awake, life: { modelBudget: budget, standing = {} } }) {
    this.budget.hidden = !budget;
    if (budget) this.showBudget(budget);
    this.held = Boolean(standing.paused || standing.safeMode);
    this.standing.hidden = !awake;
    this.reasons.hidden = !this.held;
    setText(this.reasons, this.held ? `Nothing public leaves: ${(standing.reasons ?? []).join("; ")}` : "");
    setText(this.button, this.held ? `Let ${this.name} go on` : `Pause ${this.name}`);
  }

  showBudget({ step, tokens, usd, resetsAt }) {
    const used = Math.min(1, Math.max(part(tokens), part(usd)));
    const percent = Math.round(used * 100);
    const words = `${percent} % used, ${STEPS.get(step) ?? step}`;
    this.fill.style.width = `${used ? Math.max(LEAST_SHOWN, used * 100) : 0}%`;
    this.budget.dataset.step = step;
    this.bar.setAttribute("aria-valuenow", percent);
    this.bar.setAttribute("aria-valuetext", words);
    setText(this.step, words);
    const cap = usd?.cap ? ` of $${usd.cap.toFixed(2)}` : "";
    const dollars = usd ? `, $${usd.used.toFixed(usd.used < 1 ? 4 : 2)}${cap}` : "";
    setText(this.spent, `${count.format(tokens.used)} of ${count.format(tokens.cap)} tokens${dollars}; anew in ${until(resetsAt)}`);
  }

  async pause() {
    this.button.disabled = true;
    const error = await send("/api/pause", { handle: this.handle, paused: !this.held });
    this.button.disabled = false;
    this.problem.hidden = !error;
    setText(this.problem, error);
    if (!error) this.news(this.held ? `${this.name} may go on` : `${this.name} is paused`);
  }
}
