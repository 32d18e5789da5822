// An answer with the origin of each token, by colour, underline and tooltip.

import { asFields } from "./fields.js";
import { attachTooltip } from "./tooltip.js";
import { element } from "./dom.js";
import { markInvented } from "./warnings.js";

export const ORIGINS = {
  prototype: "copied from the prototype",
  input: "copied from the input",
  mapped: "mapped from the input as in other examples",
  generated: "generated",
};

const INVENTED = "value from nowhere";

const traced = ({ output, tokens, prototype }) => {
  if (tokens.length > 0) return tokens.filter(({ text }) => text !== "");
  const origin = prototype?.y === output ? "prototype" : null;
  return output.split(/(?=\n)/).map((text) => ({ text, origin }));
};

/** Returns the tokens of an answer; without a trace, the origin only if it is certain. */
export const tokensOf = (answer) => markInvented(traced(answer), answer.invented);

/** Counts the tokens per origin. */
export const countOrigins = (tokens) => {
  const words = tokens.filter(({ text }) => text.trim() !== "");
  const count = (origin) => words.filter((token) => token.origin === origin).length;
  return Object.keys(ORIGINS).map((origin) => [origin, count(origin)]);
};

/** Returns the tooltip of a token. */
export const explain = ({ text, origin, isInvented }, x) => {
  const word = text.trim();
  if (isInvented) return `${INVENTED}: neither your input nor the examples explain it`;
  if (origin !== "input") return ORIGINS[origin];
  const fields = Object.entries(asFields(x));
  const names = fields.filter(([, value]) => value.includes(word)).map(([name]) => name);
  return fields.length > 1 && names.length > 0 ? `${ORIGINS.input}: ${names.join(", ")}` : ORIGINS.input;
};

const classOf = ({ origin, isInvented }) => (isInvented ? "invented" : `from-${origin}`);

/** Splits off leading white space, unless it stands between tokens of one kind in one line. */
const split = ({ text }, isSame) => {
  const space = text.match(/^\s*/)[0];
  return isSame && !space.includes("\n") ? ["", text] : [space, text.slice(space.length)];
};

/** Creates the marked text: one tab stop, with arrow keys inside. */
export const showTokens = (tokens, x) => {
  const label = "Answer by origin; arrow keys move from token to token";
  const block = element("pre", { class: "code tokens", role: "group", "aria-label": label });
  let before = null;
  for (const token of tokens) {
    const kind = classOf(token);
    const [space, text] = split(token, kind === before);
    block.append(space);
    before = kind;
    if (text === "") continue;
    const mark = element("span", { class: kind }, text);
    if (token.origin || token.isInvented) {
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

/** Creates the legend with the number of tokens per origin, and of invented values if there are any. */
export const showLegend = ({ tokens, invented }) => {
  const origins = countOrigins(tokens).filter(([, count]) => count > 0);
  const item = (mark, count) => element("li", {}, mark, element("span", { class: "of" }, String(count)));
  const items = origins.map(([origin, count]) => item(key(origin), count));
  const values = element("span", { class: "key invented" }, INVENTED);
  return element("ul", { class: "legend" }, items, invented.length > 0 && item(values, invented.length));
};
