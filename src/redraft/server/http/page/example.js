// The common display of an example: its fields, its output and its meta.

import { asFields, labelOf } from "./fields.js";
import { announce, element, icon } from "./dom.js";

const COPY = "M9 9h11v11H9zM15 9V4H4v11h5";
const FEEDBACK_MS = 1600;

/** Returns an input in one line. */
export const summaryOf = (x) => Object.values(asFields(x)).join(" ").split(/\s+/).join(" ").trim();

/** Returns the meta of an example as texts, file and line as one. */
export const notesOf = ({ file, line, ...others }) => {
  const place = file === undefined ? [] : [line === undefined ? String(file) : `${file}:${line}`];
  const rest = line !== undefined && file === undefined ? { line, ...others } : others;
  return [...place, ...Object.entries(rest).map(([key, value]) => `${key} ${value}`)];
};

/** Creates a list of the meta of an example. */
export const notes = (meta) => {
  const texts = notesOf(meta);
  return texts.length > 0 && element("ul", { class: "notes" }, texts.map((text) => element("li", {}, text)));
};

/** Creates the fields of an input, labelled if there are several. */
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
  document.execCommand("copy"); // the only way without a secure context
  area.remove();
  return undefined;
};

/** Creates a button that copies the result of `text()`. */
export const copyButton = (text) => {
  const label = element("span", {}, "Copy");
  const copy = async () => {
    const result = await write(text()).then(() => "Copied", () => "Not allowed");
    label.textContent = result;
    announce(result);
    setTimeout(() => (label.textContent = "Copy"), FEEDBACK_MS);
  };
  return element("button", { type: "button", class: "quiet copy", onclick: copy }, icon(COPY), label);
};
