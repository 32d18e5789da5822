// From the prototype to the answer: what was kept, what was removed, what was added.

import { element } from "./dom.js";

const TAGS = { removed: "del", added: "ins" };

/** Removed text, in which a line end is a sign: it must not break the line of the answer. */
const removed = (text) =>
  text.split("\n").flatMap((line, at) => (at === 0 ? [line] : [element("span", { class: "newline" }), line]));

/** The changes as marked text. */
export const showDiff = (changes) =>
  element(
    "pre",
    { class: "code diff", role: "group", "aria-label": "Changes from the prototype to the answer" },
    changes.map(({ change, text }) =>
      change === "kept" ? text : element(TAGS[change], {}, change === "removed" ? removed(text) : text),
    ),
  );

/** What the marks mean. */
export const showDiffLegend = () =>
  element(
    "ul",
    { class: "legend" },
    element("li", {}, element("span", { class: "key" }, "kept of the prototype")),
    element("li", {}, element("del", { class: "key" }, "removed")),
    element("li", {}, element("ins", { class: "key" }, "added")),
  );
