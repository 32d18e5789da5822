// The warnings of an answer: values from nowhere, and an input that is like no example.

import { element, icon } from "./dom.js";

const TRIANGLE = "M12 4 2.8 20h18.4zM12 10v4.5M12 17.2v.1";

const WORD = "[\\p{L}\\p{N}_]";

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

/** Returns the spans [start, end] of values that occur in a text as whole words. */
export const findValues = (text, values) => {
  if (values.length === 0) return [];
  const longestFirst = [...values].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(`(?<!${WORD})(?:${longestFirst.map(escaped).join("|")})(?!${WORD})`, "gu");
  return [...text.matchAll(pattern)].map(({ index, 0: value }) => [index, index + value.length]);
};

/** Splits tokens where an invented value begins or ends; the pieces of values are marked. */
export const markInvented = (tokens, values) => {
  const spans = findValues(tokens.map(({ text }) => text).join(""), values);
  let done = 0;
  return tokens.flatMap((token) => {
    const start = done;
    done += token.text.length;
    const inner = spans.flat().filter((cut) => start < cut && cut < done);
    const cuts = [start, ...inner, done];
    return cuts.slice(1).map((end, at) => ({
      ...token,
      text: token.text.slice(cuts[at] - start, end - start),
      isInvented: spans.some(([first, last]) => first <= cuts[at] && end <= last),
    }));
  });
};

/** Returns the warnings of an answer as pairs of a heading and an explanation. */
export const warningsOf = ({ invented, unfamiliar }) => {
  const values = invented.map((value) => `'${value}'`).join(", ");
  const isOne = invented.length === 1;
  const advice = `Neither your input nor the examples explain ${isOne ? "it; check it" : "them; check them"} first.`;
  return [
    unfamiliar && ["Nothing similar in the index", "No example is like your input; the answer is a guess."],
    invented.length > 0 && [`${isOne ? "Value" : "Values"} from nowhere: ${values}`, advice],
  ].filter(Boolean);
};

/** Creates the list of an answer's warnings, or nothing. */
export const showWarnings = (answer) => {
  const warnings = warningsOf(answer);
  if (warnings.length === 0) return "";
  const items = warnings.map(([heading, text]) =>
    element("li", {}, icon(TRIANGLE), element("div", {}, element("strong", {}, heading), element("p", {}, text))),
  );
  return element("ul", { class: "warnings", "aria-label": "Warnings" }, items);
};

/** Creates the sign of an answer in a list that has warnings, or nothing. */
export const warningSign = (answer) => {
  const text = warningsOf(answer).map(([heading]) => heading).join("; ");
  if (text === "") return false;
  const label = element("span", { class: "visually-hidden" }, text);
  return element("span", { class: "warning-sign", title: text }, icon(TRIANGLE), label);
};
