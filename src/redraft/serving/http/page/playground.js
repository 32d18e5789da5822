// The playground: an input to its answers, and what they were made from.

import { announce, element, isSending, notice, sendingKeys } from "./dom.js";
import { clearProblems, controlOf, createFields, showProblem } from "./fields.js";
import { confidenceInWords, showAnswer, showLoading } from "./answer.js";
import { isAborted, onlyLatest } from "./api.js";
import { showLoadingPrototypes, showPrototypes } from "./prototypes.js";
import { showKeys } from "./tokens.js";
import { summaryOf } from "./example.js";

const PROTOTYPES = 10;
const STARTERS = 3;
const EXPLANATION =
  "The model retrieves the example that is easiest to edit into the answer, edits it, and shows " +
  "token by token what it kept, what it copied from your input and what it wrote.";

/** The view in a section of the page. */
export const createPlayground = (section, { api, connection }) => {
  const form = section.querySelector(".ask");
  const results = section.querySelector(".results");
  const answerPlace = section.querySelector(".answer");
  const prototypesPlace = section.querySelector(".prototypes");
  const starters = section.querySelector(".starters");
  const fields = createFields(section.querySelector(".inputs"), "input");
  const latest = onlyLatest();
  const latestStarters = onlyLatest();
  let model = null;
  let state = null;

  const setState = (name) => {
    results.dataset.state = name;
    results.setAttribute("aria-busy", String(name === "loading"));
  };

  const showIdle = () => {
    setState("idle");
    answerPlace.replaceChildren(
      notice("Ask for an answer", EXPLANATION, showKeys()),
    );
    prototypesPlace.replaceChildren();
  };

  const draw = () => {
    const id = state.answers[state.chosen].prototype?.id;
    const rank = state.prototypes.findIndex((each) => each.id === id) + 1;
    const on = { mode: (mode) => change({ mode }), choose: (chosen) => change({ chosen }) };
    showAnswer(answerPlace, { ...state, rank }, on);
  };
  const drawPrototypes = () => {
    const chosen = state.answers[state.chosen]?.prototype?.id;
    const pick = (prototype) => predict({ x: state.x, prototype });
    showPrototypes(prototypesPlace, state.prototypes, chosen, pick);
  };
  const change = (what) => {
    state = { ...state, ...what };
    draw();
    if (what.chosen !== undefined) drawPrototypes();
  };

  /** What was asked for should be seen, also by who picked a prototype far below. */
  const revealAnswer = () => {
    const { top } = answerPlace.getBoundingClientRect();
    if (top < 0 || top > innerHeight / 2) answerPlace.scrollIntoView({ block: "start" });
  };

  const showNoAnswer = () => {
    answerPlace.replaceChildren(notice("No answer", "The model found no example to edit for this input."));
    prototypesPlace.replaceChildren();
  };

  /** The prototypes with the answer's own among them, even if it is none of the nearest. */
  const withOwn = (prototypes, answers) => {
    const own = answers[0].prototype;
    return !own || prototypes.some(({ id }) => id === own.id) ? prototypes : [...prototypes, own];
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

  /** Asks for answers to an input, made from one prototype if it is given. */
  const predict = async ({ x, prototype }) => {
    const signal = latest.begin();
    const asked = { model: model.name, inputs: [x] };
    const known = prototype ? state?.prototypes : null;
    setState("loading");
    if (!state) {
      showLoading(answerPlace);
      showLoadingPrototypes(prototypesPlace);
    }
    try {
      const wanted = { ...asked, k: Number(form.elements.k.value), prototype: prototype?.id };
      const [answers, prototypes] = await Promise.all([
        api.predict(wanted, signal),
        known ?? api.retrieve({ ...asked, k: PROTOTYPES }, signal),
      ]);
      setState("shown");
      if (answers.length === 0) return showNoAnswer();
      const mode = state?.mode ?? "origins";
      state = { x, answers, chosen: 0, mode, prototypes: withOwn(prototypes, answers) };
      draw();
      drawPrototypes();
      revealAnswer();
      const { output, confidence } = answers[0];
      announce(`Answer: ${output}. ${confidence === null ? "" : confidenceInWords(confidence)}`);
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

  /** Inputs of examples to begin with: what the model finds for an empty one. */
  const showStarters = async () => {
    starters.replaceChildren();
    try {
      const blank = Object.fromEntries(model.fields.map((name) => [name, ""]));
      const asked = { model: model.name, inputs: [model.fields.length > 0 ? blank : ""], k: STARTERS };
      const found = await api.retrieve(asked, latestStarters.begin());
      if (found.length === 0) return;
      const title = element("h2", {}, "Or start from an example’s input");
      starters.replaceChildren(title, element("ul", {}, found.map(({ x }) => element("li", {}, starter(x)))));
    } catch (problem) {
      if (problem.kind === "stopped") connection.lost("starters", showStarters);
      // otherwise the page does without them: they are an offer, and the form is there
    }
  };

  form.addEventListener("submit", submit);
  section.addEventListener("keydown", (event) => {
    if (isSending(event)) submit(event);
  });
  form.querySelector("kbd").textContent = sendingKeys();

  return {
    /** Shows the view for a model; what was asked of another is forgotten. */
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
