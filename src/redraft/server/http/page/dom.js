// Creates DOM elements. Text always becomes a text node: user input is never parsed as HTML.

/** Creates an element with attributes, `on…` listeners and children; skips absent values. */
export const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) assign(made, name, value);
  made.append(...children.flat().filter(isPresent));
  return made;
};

const isPresent = (value) => value !== undefined && value !== null && value !== false;

const assign = (made, name, value) => {
  if (!isPresent(value)) return;
  if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
  else made.setAttribute(name, value === true ? "" : value);
};

/** Creates an icon from an SVG path in a 24 × 24 box. */
export const icon = (path) => {
  const space = "http://www.w3.org/2000/svg";
  const made = document.createElementNS(space, "svg");
  const line = document.createElementNS(space, "path");
  made.setAttribute("viewBox", "0 0 24 24");
  made.setAttribute("aria-hidden", "true");
  made.setAttribute("class", "icon");
  line.setAttribute("d", path);
  made.append(line);
  return made;
};

/** Creates a loading placeholder with this number of lines. */
export const skeleton = (lines) => {
  const bars = Array.from({ length: lines }, () => element("div", { class: "skeleton line" }));
  return element("div", { class: "skeletons", "aria-hidden": "true" }, bars);
};

/** Creates a notice: a heading, a text and optional actions. */
export const notice = (heading, text, ...actions) =>
  element(
    "div",
    { class: "notice" },
    element("h2", {}, heading),
    element("p", {}, text),
    actions.length > 0 && element("div", { class: "notice-actions" }, actions),
  );

/** Returns the name of the shortcut that submits a form on this system. */
export const sendingKeys = () => (/Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘ ↵" : "Ctrl ↵");

/** True if a key event is the shortcut that submits a form. */
export const isSending = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey);

/** Announces a text to screen readers. */
export const announce = (text) => {
  document.getElementById("announcer").textContent = text;
};

/** Formats a count with its noun: "1 example", "5,439 examples". */
export const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
