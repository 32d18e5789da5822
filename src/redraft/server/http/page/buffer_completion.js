// Completion in a Python buffer: ghost text after a short pause, with its prototype beside it.

import { announce, element, icon, skeleton } from "./dom.js";
import { charactersBefore } from "./code_points.js";
import { createEditor } from "./editor.js";
import { isAborted, onlyLatest } from "./api.js";
import { probabilityInWords, suggestionList } from "./suggestions.js";
import { revealBorrowed, showBorrowed } from "./borrowed.js";

const PAUSE = 60;
const SUGGESTIONS = 5;
const BACK = "M14.5 6 8.5 12l6 6";
const NEXT = "M9.5 6l6 6-6 6";
const ANY = { name: "read_text", arguments: 'path, encoding="utf-8"', docstring: "Read a text file." };

const NOTHING =
  "Suggestions appear inside the body of a function, below its header and docstring. " +
  "The functions that they are borrowed from are shown here.";

const key = (text) => element("kbd", {}, text);

const stepButton = (label, path) =>
  element("button", { type: "button", class: "quiet step", "aria-label": label }, icon(path));

const help = () =>
  element(
    "p",
    { class: "hint", id: "editor-help" },
    ...[key("Tab"), " accepts, ", key("Esc"), " dismisses, "],
    ...[key("Alt ]"), " and ", key("Alt ["), " show others. "],
    ...[key("Esc"), " twice, then ", key("Tab"), ", leaves the editor."],
  );

const layout = () => {
  const made = {
    editor: element("div", { class: "editor" }),
    previous: stepButton("Previous suggestion", BACK),
    next: stepButton("Next suggestion", NEXT),
    accept: element("button", { type: "button", class: "quiet accept" }, "Accept ", key("Tab")),
    state: element("p", { class: "suggestion-state" }),
    panel: element("aside", { class: "side", "aria-label": "Where the suggestion is from" }),
  };
  const steps = element("div", { class: "steps" }, made.previous, made.next, made.accept);
  const bar = element("div", { class: "editor-bar" }, made.state, steps);
  const frame = element("div", { class: "editor-frame" }, made.editor, bar);
  const main = element("div", { class: "editing-main" }, frame, help());
  return { ...made, whole: element("div", { class: "columns editing" }, main, made.panel) };
};

/** Returns a typical function of the model up to its body, to start from. */
const starterOf = ({ samples }) => {
  const isPlain = ({ name, arguments: parameters, docstring = "" }) =>
    name && parameters !== undefined && !/["\\]/.test(docstring);
  const { name, arguments: parameters, docstring } = samples.find(isPlain) ?? ANY;
  const header = `def ${name}(${parameters}):\n    `;
  return docstring ? `${header}"""${docstring.split("\n")[0]}"""\n    ` : header;
};

/** Returns the suggestions that begin with the typed text, without it. */
const typedThrough = (suggestions, typed) =>
  suggestions
    .filter(({ text }) => text.startsWith(typed) && text !== typed)
    .map((each) => ({ ...each, text: each.text.slice(typed.length) }));

/** Returns the text typed between two states of the editor; null after any other change. */
const typedBetween = (before, now) => {
  if (now.isSelection || !now.text.startsWith(before.text.slice(0, before.place))) return null;
  const typed = now.text.slice(before.place, now.place);
  return now.text.length === before.text.length + typed.length ? typed : null;
};

/** Creates the editor for a model that completes Python, with its initial text. */
export const createBufferCompletion = (place, model, { api, connection }, initial = starterOf(model)) => {
  const parts = layout();
  const latest = onlyLatest();
  let timer = null;
  let cursor = { text: "", place: 0 };
  let suggestions = [];
  let dismissed = []; // still listed beside the editor
  let chosen = 0;

  const drawPanel = () => {
    const current = suggestions[chosen];
    if (!current) {
      const title = element("h2", {}, "Nothing to suggest here");
      parts.panel.replaceChildren(title, element("p", { class: "quiet-text" }, NOTHING));
      return;
    }
    parts.panel.replaceChildren(
      element("h2", {}, "Suggestions"),
      suggestionList(suggestions, chosen, choose, "Suggestions"),
      element("h2", {}, "Borrowed from"),
      showBorrowed(current.prototype, current.text),
    );
    revealBorrowed(parts.panel);
  };
  const describe = () => {
    const current = suggestions[chosen];
    if (!current) return "No suggestion at the cursor";
    const likely = probabilityInWords(current.probability);
    return `${chosen + 1} of ${suggestions.length}${likely && `, next token ${likely} likely`}`;
  };
  const draw = () => {
    const current = suggestions[chosen];
    editor.suggest(current?.text ?? "");
    parts.state.textContent = describe();
    for (const button of [parts.previous, parts.next]) button.disabled = suggestions.length < 2;
    parts.accept.disabled = !current;
  };
  const drawAll = () => {
    draw();
    drawPanel();
  };
  const choose = (at) => {
    if (suggestions.length === 0) suggestions = dismissed;
    if (!suggestions[at]) return;
    chosen = at;
    drawAll();
    parts.panel.querySelector("[aria-pressed=true]")?.focus();
  };
  const cycle = (step) => {
    if (suggestions.length === 0) return;
    chosen = (chosen + step + suggestions.length) % suggestions.length;
    drawAll();
    announce(suggestions[chosen].text);
  };
  const dismiss = () => {
    clearTimeout(timer);
    latest.cancel();
    if (suggestions.length > 0) dismissed = suggestions;
    suggestions = [];
    draw();
    parts.state.textContent = "Dismissed; keep typing for another";
  };
  const accept = () => {
    const current = suggestions[chosen];
    if (current) editor.insert(current.text);
  };

  const fail = (problem) => {
    suggestions = [];
    draw();
    if (problem.kind === "stopped") connection.lost("completion", ask);
    parts.state.textContent = problem.message;
  };
  const ask = async () => {
    const { text, place: units } = cursor;
    try {
      const body = { model: model.name, text, offset: charactersBefore(text, units), k: SUGGESTIONS };
      suggestions = await api.complete(body, latest.begin());
      chosen = 0;
      drawAll();
      if (suggestions[0]) announce(`Suggestion: ${suggestions[0].text}`);
    } catch (problem) {
      if (!isAborted(problem)) fail(problem);
    }
  };

  const change = (now) => {
    const typed = typedBetween(cursor, now);
    dismissed = [];
    suggestions = typed === null ? [] : typedThrough(suggestions.slice(chosen), typed);
    chosen = 0;
    cursor = now;
    draw();
    clearTimeout(timer);
    latest.cancel();
    if (!now.isSelection) timer = setTimeout(ask, PAUSE);
  };

  place.replaceChildren(parts.whole);
  const editor = createEditor(parts.editor, { change, accept, dismiss, cycle });
  parts.panel.append(element("h2", {}, "Suggestions"), skeleton(4));
  parts.previous.addEventListener("click", () => cycle(-1));
  parts.next.addEventListener("click", () => cycle(1));
  parts.accept.addEventListener("click", accept);
  editor.write(initial);
  return { stop: dismiss, text: () => cursor.text };
};
