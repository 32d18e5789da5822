// A list of suggestions with their probabilities, one of which is chosen.

import { element } from "./dom.js";

/** Formats a probability; empty if there is none, as for verbatim copies. */
export const probabilityInWords = (probability) => {
  if (probability === null) return "";
  const percent = 100 * probability;
  if (percent < 1) return "< 1 %";
  return percent > 99 ? "> 99 %" : `${Math.round(percent)} %`;
};

/** Returns a text in one line, which is never empty. */
export const lineOf = (text) => {
  const [first, ...more] = text.trim().split("\n");
  if (first === "") return text.includes("\n") ? "↵ (new line)" : "(white space)";
  return more.length > 0 ? `${first} …` : first;
};

/** Creates a list of buttons, one per suggestion. */
export const suggestionList = (suggestions, chosen, choose, label) =>
  element(
    "ol",
    { class: "suggestion-list", "aria-label": label },
    suggestions.map(({ text, probability }, at) =>
      element(
        "li",
        {},
        element(
          "button",
          {
            type: "button",
            class: "answer-choice",
            "aria-pressed": chosen === null ? null : String(at === chosen),
            onclick: () => choose(at),
          },
          element("span", { class: "rank" }, String(at + 1)),
          element("code", {}, lineOf(text)),
          element("span", { class: "probability" }, probabilityInWords(probability)),
        ),
      ),
    ),
  );
