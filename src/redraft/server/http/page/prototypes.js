// The prototypes of an input, nearest first; any of them can be edited instead of the nearest.

import { element, skeleton } from "./dom.js";
import { inputFields, notes, summaryOf } from "./example.js";

const WHY = 6;
const STEPS = { ArrowDown: 1, ArrowUp: -1 };

const heading = (count) =>
  element(
    "header",
    { class: "section-header" },
    element("h2", { id: "prototypes-heading" }, "Prototypes"),
    count > 0 && element("p", { class: "aside" }, "nearest first; edit any of them"),
  );

const toggle = ({ currentTarget: button }) => {
  const open = button.closest(".prototype").classList.toggle("open");
  button.setAttribute("aria-expanded", String(open));
  button.textContent = open ? "Show less" : "Show all";
};

const EXPAND = { type: "button", class: "link expand", "aria-expanded": "false", onclick: toggle };

const pickButton = (prototype, isChosen, pick) =>
  element(
    "button",
    {
      type: "button",
      class: "link pick",
      "aria-pressed": String(isChosen),
      "aria-label": `${isChosen ? "Edited into the answer" : "Edit this one"}: ${summaryOf(prototype.x)}`,
      onclick: () => pick(prototype),
    },
    isChosen ? "Edited into the answer" : "Edit this one",
  );

const wordsOf = (x) => summaryOf(x).toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

/** Says why an example was retrieved: the words that both inputs have. */
const why = (x, prototype) => {
  const words = [...new Set(wordsOf(x))];
  const others = new Set(wordsOf(prototype.x));
  const shared = words.filter((word) => others.has(word));
  if (wordsOf(x).join(" ") === wordsOf(prototype.x).join(" ")) return element("span", { class: "why" }, "the same input");
  if (shared.length === 0) return element("span", { class: "why" }, "shares no word with your input");
  const rest = shared.length > WHY ? ` and ${shared.length - WHY} more` : "";
  return element("span", { class: "why" }, "shares ", element("b", {}, shared.slice(0, WHY).join(", ")), rest);
};

const item = (x, prototype, at, isChosen, pick) =>
  element(
    "li",
    { class: isChosen ? "prototype chosen" : "prototype" },
    element("span", { class: "rank" }, String(at + 1)),
    element(
      "div",
      { class: "pair" },
      element("div", { class: "clamped x" }, inputFields(prototype.x)),
      element("pre", { class: "clamped y" }, prototype.y),
    ),
    element(
      "div",
      { class: "foot" },
      element("span", { class: "distance" }, "distance ", element("b", {}, prototype.distance.toFixed(3))),
      why(x, prototype),
      notes(prototype.meta),
      element("button", EXPAND, "Show all"),
      pickButton(prototype, isChosen, pick),
    ),
  );

/** Shows the expand button only on prototypes that are cut off. */
const markCut = (list) => {
  for (const each of list.querySelectorAll(".prototype:not(.open)")) {
    const boxes = [...each.querySelectorAll(".clamped")];
    each.querySelector(".expand").hidden = !boxes.some((box) => box.scrollHeight > box.clientHeight + 1);
  }
};

const moveBetween = (event) => {
  const picks = [...event.currentTarget.querySelectorAll(".pick")];
  const to = picks[picks.indexOf(document.activeElement) + (STEPS[event.key] ?? NaN)];
  if (!picks.includes(document.activeElement) || !to) return;
  event.preventDefault();
  to.focus();
};

/** Shows placeholders while the prototypes are loading. */
export const showLoadingPrototypes = (section) => {
  const places = Array.from({ length: 3 }, () => element("div", { class: "prototype" }, skeleton(2)));
  section.replaceChildren(heading(0), ...places);
};

/** Shows the prototypes of the input x; the one with the id `chosen` is marked. */
export const showPrototypes = (section, { x, prototypes }, chosen, pick) => {
  if (prototypes.length === 0) {
    const none = element("p", { class: "empty" }, "This model retrieved no example for the input.");
    section.replaceChildren(heading(0), none);
    return;
  }
  const items = prototypes.map((each, at) => item(x, each, at, each.id === chosen, pick));
  const list = element("ol", { class: "prototype-list", onkeydown: moveBetween }, items);
  const had = document.activeElement.matches(".pick");
  section.replaceChildren(heading(prototypes.length), list);
  markCut(list);
  new ResizeObserver(() => markCut(list)).observe(list);
  if (had) section.querySelector(".pick[aria-pressed=true]")?.focus({ preventScroll: true });
};
