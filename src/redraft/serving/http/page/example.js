// An example as it is shown everywhere: its fields, its output and its notes.

import { asFields, labelOf } from "./fields.js";
import { announce, element, icon } from "./dom.js";

const COPY = "M9 9h11v11H9zM15 9V4H4v11h5";
const SAID = 1600;

/** An input in one line. */
export const summaryOf = (x) => Object.values(asFields(x)).join(" ").split(/\s+/).join(" ").trim();

/** The notes of an example, file and line as one. */
export const notesOf = ({ file, line, ...others }) => {
  const place = file === undefined ? [] : [line === undefined ? String(file) : `${file}:${line}`];
  const rest = line !== undefined && file === undefined ? { line, ...others } : others;
  return [...place, ...Object.entries(rest).map(([key, value]) => `${key} ${value}`)];
};

/** The notes as a quiet list. */
export const notes = (meta) => {
  const texts = notesOf(meta);
  return texts.length > 0 && element("ul", { class: "notes" }, texts.map((text) => element("li", {}, text)));
};

/** The fields of an input, named if there are several. */
export const inputFields = (x) => {
  const entries = Object.entries(asFields(x));
  if (entries.length === 1) return element("p", { class: "input-text" }, entries[0][1]);
  return element(
    "dl",
    { class: "input-fields" },
    entries.map(([name, value]) =>
      element("div", {}, element("dt", {}, labelOf(name)), element("dd", {}, value || "–")),
    ),
  );
};

const write = async (text) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = element("textarea", { class: "visually-hidden" });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy"); // where the page is not served securely there is no other way
  area.remove();
  return undefined;
};

/** A button that copies what `text()` gives. */
export const copyButton = (text) => {
  const said = element("span", {}, "Copy");
  const copy = async () => {
    const done = await write(text()).then(() => "Copied", () => "Not allowed");
    said.textContent = done;
    announce(done);
    setTimeout(() => (said.textContent = "Copy"), SAID);
  };
  return element("button", { type: "button", class: "quiet copy", onclick: copy }, icon(COPY), said);
};
