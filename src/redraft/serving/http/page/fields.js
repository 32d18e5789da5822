// A model's input as form fields: made from its names, read as its x, with problems shown beside them.

import { element } from "./dom.js";

const TEXT = "text";

/** A name of the data as a label: "player_class" reads "Player class". */
export const labelOf = (name, isOnly) => {
  if (isOnly && name === TEXT) return "Input";
  const spaced = name.replaceAll("_", " ");
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
};

/** An input as named fields, whichever way it came. */
export const asFields = (x) => (typeof x === "string" ? { [TEXT]: x } : x);

/** A labelled text area with room for a problem. */
export const textField = ({ id, name, label, rows, hint }) =>
  element(
    "div",
    { class: "field" },
    element("label", { for: id }, label),
    hint && element("p", { class: "hint", id: `${id}-hint` }, hint),
    element("textarea", {
      id,
      name,
      rows,
      spellcheck: "false",
      autocapitalize: "off",
      "aria-describedby": `${id}-problem`,
    }),
    element("p", { class: "problem", id: `${id}-problem` }),
  );

/** The fields of a model's input inside a box; `prefix` keeps their ids apart from other forms'. */
export const createFields = (box, prefix) => {
  let names = [];
  const areas = () => [...box.querySelectorAll("textarea")];

  /** Shows these fields, and leaves what is written if they are shown already. */
  const show = (wanted) => {
    if (wanted.join("\n") === names.join("\n") && names.length > 0) return;
    names = wanted.length > 0 ? wanted : [TEXT];
    const isOnly = names.length === 1;
    box.replaceChildren(
      ...names.map((name, at) =>
        textField({ id: `${prefix}-${at}`, name, label: labelOf(name, isOnly), rows: isOnly ? 5 : 2 }),
      ),
    );
  };
  const fill = (x) => {
    const values = asFields(x);
    for (const area of areas()) area.value = values[area.name] ?? "";
  };
  const isBlank = () => areas().every((area) => area.value.trim() === "");
  /** The input as the API takes it. */
  const read = () => {
    const values = Object.fromEntries(areas().map((area) => [area.name, area.value]));
    return names.length === 1 && names[0] === TEXT ? values[TEXT] : values;
  };
  return { show, fill, read, isBlank };
};

/** The control of a form that an error's field, such as "inputs.0.title", speaks of, if any. */
export const controlOf = (form, field) => {
  const parts = (field ?? "").split(".");
  const named = [...form.elements].filter((control) => control.name);
  const direct = named.find((control) => parts.includes(control.name));
  const input = parts[0] === "inputs" || parts[0] === "x";
  return direct ?? (input ? named[0] : null) ?? null;
};

/** Shows a problem beside a control of a form, and leads there. */
export const showProblem = (control, message) => {
  control.setAttribute("aria-invalid", "true");
  const place = control.closest(".field").querySelector(".problem");
  place.textContent = message;
  control.focus();
};

/** Takes all problems of a form away. */
export const clearProblems = (form) => {
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  for (const place of form.querySelectorAll(".problem")) place.textContent = "";
};
