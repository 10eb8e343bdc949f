// What is built together: plans as boards of tasks, and pull requests with their reviews. Nothing can be changed here.

import { el, listed, shown } from "./dom.js";
import { words } from "./words.js";

const COLUMNS = [["To do", ["pending"]], ["In work", ["claimed", "in_progress"]], ["Blocked", ["blocked"]], ["Done", ["completed"]]];
const SAID = { approved: "approved it", changes_requested: "asks for changes", commented: "commented", dismissed: "was dismissed" };

export class Work {
  // `github` is where links lead, `requests` are pieces of work to ask for, `builds` what can be built.
  constructor(root, { github, requests, builds }) {
    Object.assign(this, { root, github, requests, builds });
    this.show({ plans: [], pulls: [] });
  }

  show({ plans, pulls }) {
    const nothing = el("p", { class: "empty" }, "Nothing is being built yet. Plans and pull requests will appear here.");
    const asks = this.requests.map((text) => el("p", { class: "plan-about ask" }, `Ask for it in the room: “${text}”`));
    if (this.builds) asks.push(el("p", { class: "plan-about ask words" }, ...words(this.builds, { names: [], links: "" })));
    this.root.replaceChildren(...asks,
      ...(plans.length + pulls.length ? [] : [nothing]),
      ...plans.map((plan) => shown(() => this.plan(plan), "article")),
      ...(pulls.length ? [el("h2", { class: "quiet-title" }, "Pull requests"),
        el("ul", { class: "pulls" }, ...pulls.map((pull) => shown(() => this.pull(pull), "li")))] : []));
  }

  plan(plan) {
    const done = plan.tasks.filter((task) => task.state === "completed").length;
    return el("article", { class: "plan" },
      el("h2", { class: "plan-title" }, this.link(plan, "issues", plan.title || "A plan")),
      el("p", { class: "plan-about" }, `${plan.repo}, ${plan.state === "open" ? "open" : "closed"}: ${done} of ${plan.tasks.length} done`),
      el("p", { class: "clone words" }, "Take it home: ", el("code", {}, `git clone ${this.github}/${plan.repo}.git && cd ${plan.repo.split("/")[1]} && make test`)),
      el("div", { class: "board" }, ...COLUMNS.map(([name, states]) => this.column(name,
        plan.tasks.filter((task) => states.includes(task.state))))));
  }

  column(name, tasks) {
    return el("section", { class: "column", "aria-label": name }, el("h3", {}, `${name} `, el("span", { class: "count" }, String(tasks.length))),
      el("ul", {}, ...tasks.map((task) => shown(() => el("li", { class: "task", "data-state": task.state },
        el("span", { dir: "auto" }, `${task.number}. ${task.title}`),
        task.holder ? el("span", { class: "holder" }, `@${task.holder}`) : null), "li"))));
  }

  pull(pull) {
    const said = pull.reviews.map((review) => `${review.by} ${SAID[review.state]}`);
    const asked = pull.asked.length ? [`${listed(pull.asked)} ${pull.asked.length > 1 ? "are" : "is"} asked`] : [];
    return el("li", { class: "pull", "data-state": pull.state },
      el("p", {}, el("span", { class: "pull-state" }, pull.state), " ", this.link(pull, "pull", pull.title)),
      el("p", { class: "plan-about" }, `${pull.repo} #${pull.number} by ${pull.by} from ${pull.branch}`),
      el("p", { class: "plan-about" }, [...said, ...asked].join(", ") || "nobody has looked at it yet"));
  }

  link(thing, kind, text) {
    return el("a", { href: `${this.github}/${thing.repo}/${kind}/${thing.number}`, target: "_blank", rel: "noopener noreferrer", dir: "auto" }, text);
  }
}
