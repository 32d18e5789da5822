// An answer token by token: where each came from, by colour, by underline and in words.

import { asFields } from "./fields.js";
import { attachTooltip } from "./tooltip.js";
import { element } from "./dom.js";

export const ORIGINS = {
  prototype: "copied from the prototype",
  input: "copied from the input",
  generated: "written",
};

/** The tokens of an answer; of an editor that traces none, what can be said for certain. */
export const tokensOf = ({ output, tokens, prototype }) => {
  if (tokens.length > 0) return tokens.filter(({ text }) => text !== "");
  const origin = prototype?.y === output ? "prototype" : null;
  return output.split(/(?=\n)/).map((text) => ({ text, origin }));
};

/** How many tokens came from where. */
export const countOrigins = (tokens) => {
  const words = tokens.filter(({ text }) => text.trim() !== "");
  const count = (origin) => words.filter((token) => token.origin === origin).length;
  return Object.keys(ORIGINS).map((origin) => [origin, count(origin)]);
};

/** What a tooltip says of a token. */
export const explain = ({ text, origin }, x) => {
  const word = text.trim();
  if (origin !== "input") return ORIGINS[origin];
  const fields = Object.entries(asFields(x));
  const found = fields.filter(([, value]) => value.includes(word)).map(([name]) => name);
  return fields.length > 1 && found.length > 0 ? `${ORIGINS.input}: ${found.join(", ")}` : ORIGINS.input;
};

/** White space before a token has its colour only between tokens of one origin in one line. */
const split = ({ text, origin }, before) => {
  const space = text.match(/^\s*/)[0];
  return origin === before && !space.includes("\n") ? ["", text] : [space, text.slice(space.length)];
};

/** The tokens as marked text: one stop of the Tab key, arrow keys within. */
export const showTokens = (tokens, x) => {
  const label = "Answer by origin; arrow keys move from token to token";
  const block = element("pre", { class: "code tokens", role: "group", "aria-label": label });
  let before = null;
  for (const token of tokens) {
    const [space, text] = split(token, before);
    block.append(space);
    before = token.origin;
    if (text === "") continue;
    const mark = element("span", { class: `from-${token.origin}` }, text);
    if (token.origin) {
      mark.tabIndex = -1;
      attachTooltip(mark, () => explain(token, x));
    }
    block.append(mark);
  }
  rove(block, [...block.querySelectorAll("span[tabindex]")]);
  return block;
};

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** One of the marks can be reached by Tab, the others by arrow keys. */
const rove = (block, marks) => {
  if (marks.length === 0) return;
  marks[0].tabIndex = 0;
  block.addEventListener("keydown", (event) => {
    const at = marks.indexOf(document.activeElement);
    const to = { Home: 0, End: marks.length - 1 }[event.key] ?? at + (STEPS[event.key] ?? 0);
    if (at < 0 || to === at || !marks[to]) return;
    event.preventDefault();
    marks[at].tabIndex = -1;
    marks[to].tabIndex = 0;
    marks[to].focus();
  });
};

const key = (origin) => element("span", { class: `key from-${origin}` }, ORIGINS[origin]);

/** What the colours mean. */
export const showKeys = () => {
  const items = Object.keys(ORIGINS).map((origin) => element("li", {}, key(origin)));
  return element("ul", { class: "legend" }, items);
};

/** What the colours mean, with how many tokens each has. */
export const showLegend = (tokens) =>
  element(
    "ul",
    { class: "legend" },
    countOrigins(tokens).map(([origin, count]) =>
      element("li", {}, key(origin), element("span", { class: "of" }, String(count))),
    ),
  );
