// An answer with the origin of each token, by colour, underline and tooltip.

import { asFields } from "./fields.js";
import { attachTooltip } from "./tooltip.js";
import { element } from "./dom.js";

export const ORIGINS = {
  prototype: "copied from the prototype",
  input: "copied from the input",
  generated: "generated",
};

/** Returns the tokens of an answer; without a trace, the origin only if it is certain. */
export const tokensOf = ({ output, tokens, prototype }) => {
  if (tokens.length > 0) return tokens.filter(({ text }) => text !== "");
  const origin = prototype?.y === output ? "prototype" : null;
  return output.split(/(?=\n)/).map((text) => ({ text, origin }));
};

/** Counts the tokens per origin. */
export const countOrigins = (tokens) => {
  const words = tokens.filter(({ text }) => text.trim() !== "");
  const count = (origin) => words.filter((token) => token.origin === origin).length;
  return Object.keys(ORIGINS).map((origin) => [origin, count(origin)]);
};

/** Returns the tooltip of a token. */
export const explain = ({ text, origin }, x) => {
  const word = text.trim();
  if (origin !== "input") return ORIGINS[origin];
  const fields = Object.entries(asFields(x));
  const names = fields.filter(([, value]) => value.includes(word)).map(([name]) => name);
  return fields.length > 1 && names.length > 0 ? `${ORIGINS.input}: ${names.join(", ")}` : ORIGINS.input;
};

/** Splits off leading white space, unless it stands between tokens of one origin in one line. */
const split = ({ text, origin }, before) => {
  const space = text.match(/^\s*/)[0];
  return origin === before && !space.includes("\n") ? ["", text] : [space, text.slice(space.length)];
};

/** Creates the marked text: one tab stop, with arrow keys inside. */
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

/** Roving tabindex: Tab reaches one mark, arrow keys the others. */
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

/** Creates the legend. */
export const showKeys = () => {
  const items = Object.keys(ORIGINS).map((origin) => element("li", {}, key(origin)));
  return element("ul", { class: "legend" }, items);
};

/** Creates the legend with the number of tokens per origin. */
export const showLegend = (tokens) =>
  element(
    "ul",
    { class: "legend" },
    countOrigins(tokens).map(([origin, count]) =>
      element("li", {}, key(origin), element("span", { class: "of" }, String(count))),
    ),
  );
