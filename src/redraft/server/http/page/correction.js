// Correcting an answer: the text to store as the output of the input, as a new example.

import { element } from "./dom.js";

const HINT = "The corrected answer becomes an example: the same question gets it from now on.";

const form = (answer, save, close) => {
  const area = element("textarea", { id: "correction", rows: 4, spellcheck: "false", "aria-describedby": "correction-hint" });
  const problem = element("p", { class: "problem", role: "alert" });
  const button = element("button", { class: "primary", type: "submit" }, "Save as an example");
  const submit = async (event) => {
    event.preventDefault();
    problem.textContent = area.value.trim() === "" ? "Write the right answer first." : "";
    if (problem.textContent) return;
    button.disabled = true;
    try {
      await save(area.value);
    } catch ({ message }) {
      problem.textContent = message;
      button.disabled = false;
    }
  };
  area.value = answer.output;
  return element(
    "form",
    { class: "correction", onsubmit: submit, novalidate: true },
    element(
      "div",
      { class: "field" },
      element("label", { for: "correction" }, "The right answer"),
      area,
      problem,
    ),
    element("p", { class: "hint", id: "correction-hint" }, HINT),
    element("div", { class: "actions" }, element("button", { type: "button", onclick: close }, "Cancel"), button),
  );
};

/** Creates a button that opens a form to correct the answer; `save(y)` stores it. */
export const correction = (answer, save) => {
  const place = element("div", { class: "correct" });
  const close = () => {
    place.replaceChildren(element("button", { type: "button", class: "link", onclick: open }, "Correct this answer"));
  };
  const open = () => {
    place.replaceChildren(form(answer, save, close));
    place.querySelector("textarea").focus();
  };
  close();
  return place;
};
