// The diff from the prototype to the answer.

import { element } from "./dom.js";

const TAGS = { removed: "del", added: "ins" };

/** Creates removed text, with a symbol for line ends: they must not break the answer's line. */
const removed = (text) =>
  text.split("\n").flatMap((line, at) => (at === 0 ? [line] : [element("span", { class: "newline" }), line]));

/** Creates the marked text of the changes. */
export const showDiff = (changes) =>
  element(
    "pre",
    { class: "code diff", role: "group", "aria-label": "Changes from the prototype to the answer" },
    changes.map(({ change, text }) =>
      change === "kept" ? text : element(TAGS[change], {}, change === "removed" ? removed(text) : text),
    ),
  );

/** Creates the legend. */
export const showDiffLegend = () =>
  element(
    "ul",
    { class: "legend" },
    element("li", {}, element("span", { class: "key" }, "kept from the prototype")),
    element("li", {}, element("del", { class: "key" }, "removed")),
    element("li", {}, element("ins", { class: "key" }, "added")),
  );
