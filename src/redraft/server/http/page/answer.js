// An answer: its text by origin or as a diff, its confidence, and the other answers.

import { copyButton } from "./example.js";
import { correction } from "./correction.js";
import { element, skeleton } from "./dom.js";
import { lineOf, probabilityInWords } from "./suggestions.js";
import { hideTooltip } from "./tooltip.js";
import { showDiff, showDiffLegend } from "./diff.js";
import { showKeys, showLegend, showTokens, tokensOf } from "./tokens.js";
import { showWarnings, warningSign } from "./warnings.js";

const SURE = 0.5;

/** A confidence in words: "right about 83 times in 100". */
export const confidenceInWords = (confidence) => {
  const times = Math.round(100 * confidence);
  if (times <= 0) return "Right less than once in 100";
  if (times >= 100) return "Right more than 99 times in 100";
  return `Right about ${times === 1 ? "once" : `${times} times`} in 100`;
};

const meter = (confidence) => {
  const words = confidenceInWords(confidence);
  const bar = element("i");
  bar.style.width = `${100 * confidence}%`;
  const attributes = {
    class: "bar",
    role: "meter",
    "aria-label": "Confidence",
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": Math.round(100 * confidence),
    "aria-valuetext": words,
  };
  const text = element("span", { class: "words" }, words);
  return element("div", { class: "confidence" }, text, element("div", attributes, bar));
};

const option = (value, label, isChosen, onchange) => {
  const attributes = { type: "radio", name: "answer-mode", value, checked: isChosen, onchange };
  return element("label", {}, element("input", attributes), element("span", {}, label));
};

const madeFrom = ({ prototype }, rank) => {
  if (!prototype) return "Generated without a prototype.";
  const which = rank ? `prototype ${rank}` : "a prototype";
  return `Edited from ${which}, at distance ${prototype.distance.toFixed(3)}.`;
};

const choice = (answer, at, isChosen, choose) => {
  const probability = answer.log_prob !== null && probabilityInWords(Math.exp(answer.log_prob));
  return element(
    "button",
    { type: "button", class: "answer-choice", "aria-pressed": String(isChosen), onclick: choose },
    element("span", { class: "rank" }, String(at + 1)),
    element("code", {}, answer.output === "" ? "(empty)" : lineOf(answer.output)),
    element("span", { class: "probability" }, warningSign(answer), probability),
  );
};

const others = (answers, chosen, choose) => {
  if (answers.length < 2) return "";
  const isLikely = answers.some(({ log_prob: logProb }) => logProb !== null);
  const items = answers.map((answer, at) =>
    element("li", {}, choice(answer, at, at === chosen, () => choose(at))),
  );
  return element(
    "div",
    { class: "answers" },
    element("h3", { id: "answers-heading" }, "All answers", isLikely && element("span", {}, "probability")),
    element("ol", { "aria-labelledby": "answers-heading" }, items),
  );
};

const heading = (title, ...more) =>
  element("header", { class: "section-header" }, element("h2", { id: "answer-heading" }, title), ...more);

/** True if the model should rather not answer: it would be wrong more often than right. */
export const isAbstained = ({ confidence, unfamiliar }) => unfamiliar || (confidence !== null && confidence < SURE);

const abstention = (answer) => {
  if (!isAbstained(answer)) return "";
  const text =
    "The model abstains: an answer like this would be wrong more often than right. " +
    "If you know better, correct the guess and save it.";
  return element("p", { class: "abstained" }, text);
};

/** Tokens are counted only where the editor traced them. */
const legendOf = (isDiff, answer) => {
  if (isDiff) return showDiffLegend();
  return answer.tokens.length > 0 ? showLegend(answer) : showKeys();
};

/** Shows a placeholder while the answer is loading. */
export const showLoading = (section) => {
  section.replaceChildren(heading("Answer"), element("div", { class: "code" }, skeleton(3)));
};

/** Shows one of the answers; `state` has answers, chosen, mode, x and rank, `on` the callbacks. */
export const showAnswer = (section, state, on) => {
  const answer = state.answers[state.chosen];
  const tokens = tokensOf(answer);
  const isDiff = state.mode === "diff";
  const modes = element(
    "fieldset",
    { class: "switch" },
    element("legend", { class: "visually-hidden" }, "Show"),
    option("origins", "Origins", !isDiff, () => on.mode("origins")),
    option("diff", "Diff", isDiff, () => on.mode("diff")),
  );
  hideTooltip(); // its token is about to be replaced
  const focused = section.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  section.replaceChildren(
    heading(isAbstained(answer) ? "No sure answer" : "Answer", modes, copyButton(() => answer.output)),
    abstention(answer),
    showWarnings(answer),
    isDiff ? showDiff(answer.diff) : showTokens(tokens, state.x),
    legendOf(isDiff, answer),
    element(
      "div",
      { class: "trust" },
      answer.confidence !== null && meter(answer.confidence),
      element("p", { class: "made-from" }, madeFrom(answer, state.rank)),
    ),
    others(state.answers, state.chosen, on.choose),
    correction(answer, on.save),
  );
  if (focused) section.querySelector(focused)?.focus();
};

/** Returns a selector that finds the focused control again after the section is redrawn. */
const keyOf = (control) => {
  if (control.name === "answer-mode") return "[name=answer-mode]:checked";
  return control.classList.contains("answer-choice") ? ".answer-choice[aria-pressed=true]" : null;
};
