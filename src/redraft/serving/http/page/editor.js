// A text area that reads as a code editor: line numbers, quiet colours, and ghost text at the cursor.
// The text area holds text and caret; what is seen is a copy beneath it, which has room for the ghost.

import { counted, element } from "./dom.js";
import { indentationAfter, piecesOf, splitAt } from "./python_syntax.js";

const TAB = "    ";

const colour = ({ kind, text }) => (kind ? element("span", { class: kind }, text) : text);

/** What is seen of a ghost: only its first line where code stands below, which it must not move. */
const visible = (ghost, below) => {
  const lines = ghost.split("\n");
  const isWhole = lines.length === 1 || below.trim() === "";
  return isWhole ? { lines, more: 0 } : { lines: lines.slice(0, 1), more: lines.length - 1 };
};

const showGhost = ({ lines, more }) => {
  const rest = more > 0 && element("span", { class: "more" }, `+${counted(more, "line")}`);
  const marked = lines.flatMap((line, at) => {
    const space = line.match(/^\s*/)[0]; // an indentation is no part of what is marked
    return [at > 0 && "\n", space, element("span", {}, line.slice(space.length))];
  });
  return element("span", { class: "ghost" }, marked, rest);
};

/** The numbers of the lines; the one with the cursor is as tall as its ghost. */
const numbersOf = (count, current, extra) =>
  Array.from({ length: count }, (_, at) => at + 1)
    .map((number) => (number === current ? `${number}${"\n".repeat(extra)}` : String(number)))
    .join("\n");

/** The editor inside a box; `on` is told of a changed text or cursor, and of keys for suggestions. */
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
    if (document.execCommand("insertText", false, text)) return; // the only way that undo remembers
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    moved();
  };
  const told = () => `${area.selectionStart} ${area.selectionEnd} ${area.value}`;
  const moved = () => {
    if (told() === seen) return;
    seen = told();
    const { value: text, selectionStart: start, selectionEnd: place } = area;
    on.change({ text, place, isSelection: start !== place });
  };

  const pressTab = (event) => {
    if (event.shiftKey || (leavesByTab && !ghost)) return; // the way out for who has only a keyboard
    event.preventDefault();
    if (ghost) on.accept();
    else insert(TAB);
  };
  const pressEscape = () => {
    leavesByTab = !ghost;
    on.dismiss(); // also what is still on its way
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
    // by the place of the key: with Alt, many layouts write another character
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
    /** Shows what could be inserted at the cursor; nothing if it is empty. */
    suggest: (text) => {
      ghost = text;
      draw();
    },
    insert,
  };
};
