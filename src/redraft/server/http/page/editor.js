// A text area as a code editor: line numbers, syntax colours, and ghost text at the cursor.
// The text area holds text and caret; a copy beneath it is visible and has room for the ghost text.

import { counted, element } from "./dom.js";
import { indentationAfter, piecesOf, splitAt } from "./python_syntax.js";

const TAB = "    ";

const colour = ({ kind, text }) => (kind ? element("span", { class: kind }, text) : text);

/** Returns the visible lines of the ghost text: only the first if there is code below. */
const visible = (ghost, below) => {
  const lines = ghost.split("\n");
  const isWhole = lines.length === 1 || below.trim() === "";
  return isWhole ? { lines, more: 0 } : { lines: lines.slice(0, 1), more: lines.length - 1 };
};

const showGhost = ({ lines, more }) => {
  const rest = more > 0 && element("span", { class: "more" }, `+${counted(more, "line")}`);
  const marked = lines.flatMap((line, at) => {
    const space = line.match(/^\s*/)[0]; // indentation is not highlighted
    return [at > 0 && "\n", space, element("span", {}, line.slice(space.length))];
  });
  return element("span", { class: "ghost" }, marked, rest);
};

/** Returns the line numbers; the cursor's line is as tall as its ghost text. */
const numbersOf = (count, current, extra) =>
  Array.from({ length: count }, (_, at) => at + 1)
    .map((number) => (number === current ? `${number}${"\n".repeat(extra)}` : String(number)))
    .join("\n");

/** Creates the editor inside a box; `on` has callbacks for changes and for suggestion keys. */
export const createEditor = (box, on) => {
  const area = element("textarea", {
    id: "buffer",
    class: "buffer",
    wrap: "off",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    "aria-label": "Python code",
    "aria-describedby": "editor-help",
  });
  const copy = element("pre", { class: "copy-of-text", "aria-hidden": "true" });
  const numbers = element("pre", { class: "line-numbers", "aria-hidden": "true" });
  const stack = element("div", { class: "stack" }, copy, area);
  box.replaceChildren(element("div", { class: "sheet" }, numbers, stack));
  let ghost = "";
  let leavesByTab = false;
  let seen = "";

  const draw = () => {
    const { value, selectionEnd: place } = area;
    const [before, after] = splitAt(piecesOf(value), place);
    const end = value.indexOf("\n", place);
    const shown = visible(ghost, end < 0 ? "" : value.slice(end));
    const ghosts = ghost ? [showGhost(shown)] : [];
    copy.replaceChildren(...before.map(colour), ...ghosts, ...after.map(colour), "\n");
    const line = value.slice(0, place).split("\n").length;
    numbers.textContent = numbersOf(value.split("\n").length, line, shown.lines.length - 1);
  };
  const insert = (text) => {
    area.focus();
    if (document.execCommand("insertText", false, text)) return; // the only way to keep undo history
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    moved();
  };
  const snapshot = () => `${area.selectionStart} ${area.selectionEnd} ${area.value}`;
  const moved = () => {
    if (snapshot() === seen) return;
    seen = snapshot();
    const { value: text, selectionStart: start, selectionEnd: place } = area;
    on.change({ text, place, isSelection: start !== place });
  };

  const pressTab = (event) => {
    if (event.shiftKey || (leavesByTab && !ghost)) return; // lets keyboard users leave the editor
    event.preventDefault();
    if (ghost) on.accept();
    else insert(TAB);
  };
  const pressEscape = () => {
    leavesByTab = !ghost;
    on.dismiss(); // also cancels pending requests
  };
  area.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Tab") pressTab(event);
    if (event.key === "Escape") return pressEscape();
    if (event.key !== "Shift") leavesByTab = false;
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      insert(`\n${indentationAfter(area.value, area.selectionStart)}`);
    }
    // by key code: with Alt, many keyboard layouts produce another character
    const step = event.altKey && { BracketRight: 1, BracketLeft: -1 }[event.code];
    if (step) {
      event.preventDefault();
      on.cycle(step);
    }
  });
  area.addEventListener("input", moved);
  document.addEventListener("selectionchange", () => document.activeElement === area && moved());

  return {
    /** Replaces the text, with the cursor at its end. */
    write: (text) => {
      area.value = text;
      area.setSelectionRange(text.length, text.length);
      draw();
      moved();
    },
    /** Shows ghost text at the cursor; hides it if empty. */
    suggest: (text) => {
      ghost = text;
      draw();
    },
    insert,
  };
};
