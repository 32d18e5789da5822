// Completion for models of other data than functions: an input, a prefix of the output, completions.

import { clearProblems, controlOf, createFields, showProblem, textField } from "./fields.js";
import { element, isSending, notice, sendingKeys } from "./dom.js";
import { isAborted, onlyLatest } from "./api.js";
import { revealBorrowed, showBorrowed } from "./borrowed.js";
import { suggestionList } from "./suggestions.js";

const SUGGESTIONS = 5;

const namesOf = (fields) =>
  fields.length < 2 ? "texts" : `the fields ${fields.slice(0, -1).join(", ")} and ${fields.at(-1)}`;

const layout = () => {
  const prefix = { id: "prefix", name: "prefix", label: "Output so far", rows: 3 };
  const hint = "May be empty. Completions are appended to it.";
  const inputs = element("div", { class: "inputs" });
  const written = textField({ ...prefix, hint });
  const keys = element("kbd", {}, sendingKeys());
  const go = element("button", { class: "primary", type: "submit" }, "Complete ", keys);
  const actions = element("div", { class: "actions" }, go);
  const attributes = { class: "ask", novalidate: true, "aria-label": "Output to complete" };
  const form = element("form", attributes, inputs, written, actions);
  const panel = element("div", { class: "results", "aria-live": "polite" });
  const area = written.querySelector("textarea");
  area.classList.add("mono");
  return { inputs, form, panel, area, whole: element("div", { class: "columns" }, form, panel) };
};

/** Creates the form for a model that completes outputs. */
export const createPrefixCompletion = (place, model, { api, connection }) => {
  const { inputs, form, panel, area, whole } = layout();
  const fields = createFields(inputs, "completed");
  const latest = onlyLatest();

  const showIdle = () => {
    const why = `Its inputs are ${namesOf(model.fields)}, not Python functions, so there is no code editor.`;
    const what = "Enter an input and the beginning of the output to see completions.";
    panel.replaceChildren(notice("This model completes outputs", `${why} ${what}`));
  };

  const insert = (text) => {
    area.value += text;
    complete();
  };
  const show = (suggestions) => {
    if (suggestions.length === 0) {
      panel.replaceChildren(notice("No completions", "The model would end the output here."));
      return;
    }
    const [{ prototype, text }] = suggestions;
    const choose = (at) => insert(suggestions[at].text);
    panel.replaceChildren(
      element(
        "section",
        {},
        element("h2", {}, "Completions"),
        element("p", { class: "quiet-text" }, "Choose one to append it to the output."),
        suggestionList(suggestions, null, choose, "Completions"),
      ),
      element("section", {}, element("h2", {}, "Borrowed from"), showBorrowed(prototype, text)),
    );
    revealBorrowed(panel);
  };
  const fail = (problem) => {
    if (problem.kind === "stopped") return connection.lost("completion", complete);
    const control = problem.kind === "invalid" ? controlOf(form, problem.field) : null;
    if (control) return showProblem(control, problem.message);
    const again = element("button", { type: "button", onclick: complete }, "Try again");
    return panel.replaceChildren(notice("That did not work", problem.message, again));
  };
  const complete = async () => {
    clearProblems(form);
    panel.setAttribute("aria-busy", "true");
    try {
      const request = { model: model.name, x: fields.read(), prefix: area.value, k: SUGGESTIONS };
      show(await api.complete(request, latest.begin()));
    } catch (problem) {
      if (!isAborted(problem)) fail(problem);
    }
    panel.removeAttribute("aria-busy");
  };
  const submit = (event) => {
    event.preventDefault();
    if (fields.isBlank()) return showProblem(form.querySelector("textarea"), "Write an input first.");
    return complete();
  };

  fields.show(model.fields);
  form.addEventListener("submit", submit);
  form.addEventListener("keydown", (event) => {
    if (isSending(event)) submit(event);
  });
  place.replaceChildren(whole);
  showIdle();
  return { stop: latest.cancel };
};
