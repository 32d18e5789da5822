// The playground: predictions for an input, with their provenance and prototypes.

import { announce, element, isSending, notice, sendingKeys } from "./dom.js";
import { clearProblems, controlOf, createFields, showProblem } from "./fields.js";
import { confidenceInWords, isAbstained, showAnswer, showLoading } from "./answer.js";
import { isAborted, onlyLatest } from "./api.js";
import { showLoadingPrototypes, showPrototypes } from "./prototypes.js";
import { showKeys } from "./tokens.js";
import { summaryOf } from "./example.js";
import { warningsOf } from "./warnings.js";

const PROTOTYPES = 10;
const EXPLANATION =
  "The model retrieves the example that is easiest to edit into the answer and edits it. Each token " +
  "is marked as copied from the example, copied from your input, mapped from it, or generated.";

/** Creates the view in a section of the page. */
export const createPlayground = (section, { api, connection }) => {
  const form = section.querySelector(".ask");
  const results = section.querySelector(".results");
  const answerPlace = section.querySelector(".answer");
  const prototypesPlace = section.querySelector(".prototypes");
  const starters = section.querySelector(".starters");
  const fields = createFields(section.querySelector(".inputs"), "input");
  const latest = onlyLatest();
  let model = null;
  let state = null;

  const setState = (name) => {
    results.dataset.state = name;
    results.setAttribute("aria-busy", String(name === "loading"));
  };

  const showIdle = () => {
    setState("idle");
    answerPlace.replaceChildren(
      notice("Enter an input", EXPLANATION, showKeys()),
    );
    prototypesPlace.replaceChildren();
  };

  const draw = () => {
    const id = state.answers[state.chosen].prototype?.id;
    const rank = state.prototypes.findIndex((each) => each.id === id) + 1;
    const on = { mode: (mode) => change({ mode }), choose: (chosen) => change({ chosen }), save };
    showAnswer(answerPlace, { ...state, rank }, on);
  };
  const drawPrototypes = () => {
    const chosen = state.answers[state.chosen]?.prototype?.id;
    const pick = (prototype) => predict({ x: state.x, prototype });
    showPrototypes(prototypesPlace, state, chosen, pick);
  };
  const change = (update) => {
    state = { ...state, ...update };
    draw();
    if (update.chosen !== undefined) drawPrototypes();
  };

  /** Scrolls to the answer, for example after a prototype far below was picked. */
  const revealAnswer = () => {
    const { top } = answerPlace.getBoundingClientRect();
    if (top < 0 || top > innerHeight / 2) answerPlace.scrollIntoView({ block: "start" });
  };

  const showNoAnswer = () => {
    answerPlace.replaceChildren(notice("No answer", "The model found no example to edit for this input."));
    prototypesPlace.replaceChildren();
  };

  /** Adds the answer's prototype to the list if it is not among the nearest. */
  const withEdited = (prototypes, answers) => {
    const edited = answers[0].prototype;
    return !edited || prototypes.some(({ id }) => id === edited.id) ? prototypes : [...prototypes, edited];
  };

  const fail = (problem, again) => {
    setState(state ? "shown" : "idle");
    if (problem.kind === "stopped") {
      if (!state) showIdle();
      return connection.lost("playground", again);
    }
    const control = problem.kind === "invalid" ? controlOf(form, problem.field) : null;
    if (control) {
      if (!state) showIdle();
      return showProblem(control, problem.message);
    }
    state = null;
    const retry = element("button", { type: "button", onclick: again }, "Try again");
    answerPlace.replaceChildren(notice("That did not work", problem.message, retry));
    prototypesPlace.replaceChildren();
    return undefined;
  };

  /** Requests answers for an input, edited from `prototype` if it is given. */
  const predict = async ({ x, prototype }) => {
    const signal = latest.begin();
    const request = { model: model.name, inputs: [x] };
    const cached = prototype ? state?.prototypes : null;
    setState("loading");
    if (!state) {
      showLoading(answerPlace);
      showLoadingPrototypes(prototypesPlace);
    }
    try {
      const predictRequest = { ...request, k: Number(form.elements.k.value), prototype: prototype?.id };
      const [answers, prototypes] = await Promise.all([
        api.predict(predictRequest, signal),
        cached ?? api.retrieve({ ...request, k: PROTOTYPES }, signal),
      ]);
      setState("shown");
      if (answers.length === 0) return showNoAnswer();
      const mode = state?.mode ?? "origins";
      state = { x, answers, chosen: 0, mode, prototypes: withEdited(prototypes, answers) };
      draw();
      drawPrototypes();
      revealAnswer();
      const { output, confidence } = answers[0];
      const warnings = warningsOf(answers[0]).map(([heading]) => `Warning: ${heading}.`);
      const words = confidence === null ? [] : [confidenceInWords(confidence)];
      const kind = isAbstained(answers[0]) ? "No sure answer; a guess" : "Answer";
      announce([`${kind}: ${output}.`, ...warnings, ...words].join(" "));
    } catch (problem) {
      if (!isAborted(problem)) fail(problem, () => predict({ x, prototype }));
    }
    return undefined;
  };

  const submit = (event) => {
    event?.preventDefault();
    clearProblems(form);
    if (fields.isBlank()) return showProblem(form.querySelector("textarea"), "Write an input first.");
    const count = form.elements.k;
    if (!count.checkValidity() || count.value === "") return showProblem(count, "A number from 1 to 20.");
    return predict({ x: fields.read() });
  };

  const start = (x) => {
    fields.fill(x);
    submit();
  };

  const starter = (x) =>
    element("button", { type: "button", class: "starter", onclick: () => start(x) }, summaryOf(x));

  /** Shows typical inputs to start from. */
  const showStarters = () => {
    starters.replaceChildren();
    if (model.samples.length === 0) return;
    const title = element("h2", {}, "Or start from a typical input");
    starters.replaceChildren(title, element("ul", {}, model.samples.map((x) => element("li", {}, starter(x)))));
  };

  /** Stores the corrected output as an example and predicts again: it is retrieved at once. */
  const save = async (y) => {
    const { x } = state;
    await api.add({ model: model.name, examples: [{ x, y }] });
    announce("Saved as an example");
    await predict({ x });
  };

  form.addEventListener("submit", submit);
  section.addEventListener("keydown", (event) => {
    if (isSending(event)) submit(event);
  });
  form.querySelector("kbd").textContent = sendingKeys();

  return {
    /** Shows the view for a model and discards the results of another. */
    show: (wanted) => {
      if (model?.name === wanted.name) return;
      latest.cancel();
      model = wanted;
      state = null;
      clearProblems(form);
      fields.show(model.fields);
      showIdle();
      showStarters();
    },
    /** Writes an input into the form. */
    fill: (x) => fields.fill(x),
  };
};
