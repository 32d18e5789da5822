// The prototype of a suggestion, with the borrowed part highlighted.

import { asFields } from "./fields.js";
import { element } from "./dom.js";
import { inputFields, notes } from "./example.js";

const LEAST = 3;

/** Returns [start, end] of the longest part of a suggestion that occurs in `output`, or null. */
export const findBorrowed = (output, suggestion) => {
  const whole = suggestion.trim();
  const lines = whole.split("\n").map((line) => line.trim());
  const parts = [whole, ...lines.sort((a, b) => b.length - a.length)].filter((part) => part.length >= LEAST);
  const borrowed = parts.find((part) => output.includes(part));
  if (borrowed === undefined) return null;
  const start = output.indexOf(borrowed);
  return [start, start + borrowed.length];
};

const body = (output, suggestion) => {
  const place = findBorrowed(output, suggestion);
  if (!place) return element("pre", { class: "code" }, output);
  const [start, end] = place;
  const borrowed = element("mark", {}, output.slice(start, end));
  return element("pre", { class: "code" }, output.slice(0, start), borrowed, output.slice(end));
};

const header = (x) => {
  const { name, arguments: parameters, docstring } = asFields(x);
  if (name === undefined || parameters === undefined) return inputFields(x);
  return element(
    "div",
    { class: "function" },
    element("p", { class: "signature" }, element("code", {}, element("b", {}, name), `(${parameters})`)),
    docstring && element("p", { class: "docstring" }, docstring.split("\n\n")[0]),
  );
};

/** Creates a card of the suggestion's prototype. */
export const showBorrowed = (prototype, suggestion) => {
  if (!prototype) return element("p", { class: "quiet-text" }, "Generated without a prototype.");
  const parts = [header(prototype.x), notes(prototype.meta), body(prototype.y, suggestion)];
  return element("div", { class: "borrowed" }, parts);
};

/** Scrolls the code block to the borrowed part. */
export const revealBorrowed = (place) => {
  const block = place.querySelector("pre");
  const mark = place.querySelector("mark");
  if (!block) return;
  if (mark) block.scrollTop = mark.offsetTop - block.offsetTop - block.clientHeight / 2;
  if (block.scrollHeight > block.clientHeight + 1) {
    block.tabIndex = 0;
    block.setAttribute("role", "group");
    block.setAttribute("aria-label", "Body of the borrowed function");
  }
};
