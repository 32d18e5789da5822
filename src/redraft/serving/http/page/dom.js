// Elements from values. Text is always a text node: nothing that anyone wrote is read as HTML.

/** An element with attributes, `on…` listeners and children; absent values are left out. */
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

/** A line icon of a path in a box of 24. */
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

/** A placeholder for so many lines that are on their way. */
export const skeleton = (lines) => {
  const bars = Array.from({ length: lines }, () => element("div", { class: "skeleton line" }));
  return element("div", { class: "skeletons", "aria-hidden": "true" }, bars);
};

/** A state that explains itself: a heading, what it means, and perhaps what to do. */
export const notice = (heading, text, ...actions) =>
  element(
    "div",
    { class: "notice" },
    element("h2", {}, heading),
    element("p", {}, text),
    actions.length > 0 && element("div", { class: "notice-actions" }, actions),
  );

/** The keys that send a form, as this machine calls them. */
export const sendingKeys = () => (/Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘ ↵" : "Ctrl ↵");

/** Whether a key was pressed that sends a form. */
export const isSending = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey);

/** Says something to those who listen to the page. */
export const announce = (text) => {
  document.getElementById("announcer").textContent = text;
};

/** A number of things in words: "1 example", "5,439 examples". */
export const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
